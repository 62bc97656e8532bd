"""`summarise`: after the answer, write the summary of the conversation if it is due."""

import logging
import time

from langchain_core.messages import AIMessage

from replan.base.errors import ModelCallError, ReplanError, StorageError
from replan.log.events.calls import message_as_text
from replan.log.events.types import MemorySummary
from replan.models.spending.scopes import price_of
from replan.nodes.host.host_call import HostCall
from replan.nodes.host.new_settings import host_node
from replan.prompts.host import build_summary_prompt
from replan.prompts.replies.readings import read_answer
from replan.state.conversation.conversation import MemoryPolicy, covering, to_cover
from replan.state.enhanced import EnhancedState
from replan.state.options import Summary
from replan.state.outcomes import CONTENT_FILTER

ROOM_TO_THINK = 4_096
"""Tokens of a reply in addition to its summary, for models that think before they write."""

LONGEST_SUMMARY = 30.0
"""Seconds after an answer that its run may take to write a summary, in one attempt."""

_CHARACTERS = 4  # of a token, approximately

logger = logging.getLogger(__name__)


@host_node("memory_summary")
async def summarise(state: EnhancedState, call: HostCall) -> EnhancedState:
    """Write the summary; if that fails, the earlier one and the answer stay unchanged."""
    update: EnhancedState = {}
    # Who waits for the run waits for this, too; the next answer tries again.
    call.tries, call.seconds = 1, min(call.seconds, LONGEST_SUMMARY)
    try:
        update["memory_summary"] = await written_summary(state, call)
    except StorageError:
        raise
    except ReplanError as error:
        logger.warning("summary not written", extra={"run_id": call.run_id, "error": str(error)})
    if call.emitter.warnings:
        update["warnings"] = call.emitter.warnings
    update["usage"] = await call.usage(state)
    await call.release()
    return update


async def written_summary(state: EnhancedState, call: HostCall) -> Summary:
    """Have the next summary written, and report it.

    Raises:
        ReplanError: There is none: the model failed, refused or wrote nothing, or a limit of the
            run leaves no room for it.
    """
    call.reports_calls = False
    host, began, reply = call.services.prompts, time.monotonic(), ""
    memory, summary = host.memory_in(state), state.get("memory_summary")
    before, added = to_cover(state, memory)
    prompt = build_summary_prompt(before, added, host, max_tokens=memory.max_tokens)
    chat, failed = call.services.models.answering, None
    try:
        chat = call.services.model_of(memory.model) if memory.model else chat
        reply = await call.ask(chat.within(memory.max_tokens + ROOM_TO_THINK), prompt)
        summary = covering(state, added, _summary_in(reply, call, memory))
    except ReplanError as error:
        failed = error
    keeps, used = call.emitter.keeps_prompts, call.used
    is_counted, price = bool(used.total_tokens), price_of(chat.names, call.services.prices)
    await call.emitter.emit(
        MemorySummary,
        covered=0 if summary is None else summary.covered,
        model=chat.names[0],
        calls=used.calls,
        input_tokens=used.input_tokens if is_counted else None,
        output_tokens=used.output_tokens if is_counted else None,
        cost=None if price is None else used.cost,
        seconds=round(time.monotonic() - began, 3),
        error=_reason_of(failed),
        prompt=tuple(map(message_as_text, prompt)) if keeps else (),
        reply=message_as_text(AIMessage(reply)) if keeps and reply else None,
    )
    if failed is not None or summary is None:
        raise failed or ModelCallError(call.node, "there is nothing to summarise")
    return summary


def _reason_of(failed: ReplanError | None) -> str:
    """Why there is no summary; advice is for those who asked for one."""
    if failed is None:
        return ""
    return failed.problem if isinstance(failed, ModelCallError) else str(failed)


def _summary_in(reply: str, call: HostCall, memory: MemoryPolicy) -> str:
    """The summary in a reply; any other reply must not become one."""
    text = read_answer(reply).body.strip()
    if call.end.words or call.end.cut == CONTENT_FILTER:
        raise ModelCallError(call.node, call.end.why)
    if not text:
        raise ModelCallError(call.node, call.end.why or "the model returned an empty reply")
    return _bounded(text, memory.max_tokens)


def _bounded(text: str, tokens: int) -> str:
    """The beginning of a text that is longer than this many tokens, approximately."""
    size = 0
    for at, character in enumerate(text):
        # Most scripts take a token for a character, or more.
        size += 1 if character.isascii() else _CHARACTERS
        if size > tokens * _CHARACTERS:
            return f"{text[: max(0, at - _CHARACTERS)].rstrip()}\N{HORIZONTAL ELLIPSIS}"
    return text
