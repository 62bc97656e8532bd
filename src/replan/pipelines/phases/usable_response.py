"""Whether a response can be used: found before anything of it is put into a thread."""

from typing import cast

from pydantic import ValidationError

from replan.base.errors import PhaseError, ThreadError
from replan.base.texts.storable import storable_text
from replan.pipelines.messages import message_in
from replan.pipelines.phases.suggestions import SUGGESTION, check_suggestion, suggested_phase
from replan.pipelines.response import UPDATE, Response
from replan.pipelines.task import Task
from replan.state.pipeline.threads import Thread, frozen_meta


def check_response(
    response: object, working_thread: Thread, name: str, following: tuple[str, ...] = ()
) -> Response:
    """Refuse what is not a response, or says what cannot be done.

    Args:
        response: What a handler or an agent returned.
        working_thread: The thread that it works on.
        name: Who returned it.
        following: The phases that it may suggest.
    """
    if not isinstance(response, Response):
        problem = f"{name} returned {type(response).__name__}, not a Response"
        raise _unusable(working_thread, problem, "Return Response(text).")
    if response.is_failed:
        return response
    if problem := _problem_of(response):
        raise _unusable(working_thread, f"{name} returned {problem[0]}", problem[1])
    if (update := response.message_update) is not None:
        message_in(working_thread, update.message_id)
    try:
        # A handler suggests a phase by its method, or with its response.
        wanted = {suggested_phase(working_thread), response.phase_suggestion} - {None}
        for suggested in sorted(map(str, wanted)):
            check_suggestion(working_thread, suggested, following, name)
        if len(wanted) > 1:
            problem = f"{name} suggests several phases: {', '.join(sorted(map(str, wanted)))}"
            raise _unusable(working_thread, problem, "Suggest one.")
    except ThreadError:
        working_thread.settings.pop(SUGGESTION, None)
        raise
    response.text = storable_text(response.text)
    return response


def check_sub_response(
    response: object, working_thread: Thread, name: str, following: tuple[str, ...] = ()
) -> Response:
    """Refuse as `check_response` does, and fields of responses of the main thread, too."""
    found = check_response(response, working_thread, name, following)
    wrong = {
        "a stream": found.is_stream,
        "a next task": bool(found.next_tasks),
        "a request for a sub-thread": found.sub_thread_request is not None,
    }
    for what in (field for field, is_wrong in wrong.items() if is_wrong):
        problem = f"{name} returned {what}, which only the main thread has"
        fix = "Return the whole text: Response(await adapter.chat(...))."
        raise _unusable(working_thread, problem, fix)
    return found


def _unusable(thread: Thread, problem: str, fix: str) -> PhaseError:
    return PhaseError(thread.id, thread.phase, problem, fix)


def _problem_of(response: Response) -> tuple[str, str] | None:
    """What is wrong with a response that has no failure, and its fix."""
    text = cast("object", response.text)
    if not isinstance(text, str):
        problem = f"a Response whose text is of type {type(text).__name__}"
        return problem, "Return Response(text)."
    is_elsewhere = response.is_stream or response.skips_message or UPDATE in response.meta
    if not text.strip() and not is_elsewhere:
        return "an empty text", "Return some text."
    for task in cast("list[object]", response.next_tasks):
        if not isinstance(task, Task):
            problem = f"a Response of which a next task is of type {type(task).__name__}"
            return problem, "Add a Task(name=...)."
    try:
        frozen_meta(response.message_meta)
    except ValueError as error:
        return f"a Response whose {error}", "Give JSON."
    try:
        _ = response.message_update
    except ValidationError as error:
        wrong = error.errors()[-1]
        where = ".".join(map(str, wrong["loc"]))
        problem = f"a Response whose {UPDATE} is wrong at '{where}': {wrong['msg']}"
        return problem, "Give MessageUpdate(message_id=..., text=...)."
    return None
