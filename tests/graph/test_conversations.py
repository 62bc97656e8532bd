"""What models say and what becomes of it, in this process and over HTTP, as pages have it.

A page is as `transcripts.py` says. `$ ask TEXT` asks a team, whose host and chat specialists follow
the `replies` of the session; a `plan.md` of the session goes with it. A `team` block has options of
the team, and `members`: their cards, for specialists that need no model. Below stand the calls of
the host (with what it was told, if it was asked again), the results of steps, and the end.
"""

import os
from pathlib import Path

import pytest
import yaml

from replan import InputError, Limits, Specialist, stream
from transcripts import BLOCK, reply_of, sections_of
from two_ways import calls_of

PAGES = sorted((Path(__file__).parent / "conversations").glob("*.md"))
SESSIONS = [(page, name) for page in PAGES for name in sections_of(page) if name]
COMPLAINT = 200


def shortened(text):
    text = " ".join(text.split())
    return text if len(text) <= COMPLAINT else f"{text[:COMPLAINT]}…"


def calls(model, events):
    """The calls of the host, in their order."""
    asked = [event for event in events if event.type == "model_invoked" and event.step_id is None]
    made = [call for call in calls_of(model) if call.step is None]
    for event, call in zip(asked, made, strict=True):
        told = f", again: {shortened(call.messages[-1].text)}" if event.is_reprompt else ""
        yield f"{event.node}{told}"


def results(model, events):
    """The results of steps, with what the specialists were told that were asked again."""
    done = [event for event in events if event.type == "specialist_completed"]
    for event in sorted(done, key=lambda event: event.step_id):
        step = f"step {event.step_id} {event.specialist}"
        prompts = [c.messages[-1].text for c in calls_of(model) if c.step == event.step_id]
        told = [prompt for prompt in prompts if not prompt.startswith("<")]
        yield from (f"{step}, again: {shortened(prompt)}" for prompt in told)
        text = event.result.error or event.result.marked_text
        counted = f" ({len(prompts)} calls)" if len(prompts) > 1 else ""
        yield f"{step}, {event.status}{counted}: {shortened(text)}"


def end(events):
    last = events[-1]
    for event in events:
        if event.type == "steps_routed":
            yield f"routed: {event.assignments}"
        elif event.type == "plan_parse_warning":
            yield from (f"line {each.line}, as text: {each.text}" for each in event.parse_warnings)
        elif event.type == "limit_reached":
            yield f"limit {event.limit}, {event.value}"
    plans = [event.plan for event in events if event.type in ("plan_created", "plan_updated")]
    for line in plans[-1].content.splitlines() if plans else ():
        if line.startswith("- ["):
            yield f"{line} (version {plans[-1].version})"
    yield f"{last.outcome}: {shortened(last.answer.text)}"
    streamed = "".join(event.text for event in events if event.type == "answer_token")
    if streamed not in ("", last.answer.text):
        yield f"streamed: {streamed}"
    yield from (f"warning: {each}" for each in last.warnings)


def done(context):
    return f"{context.task_description} is done"


async def carried_out(above, section, on_script, team):
    """A session with what becomes of it now."""
    blocks = {kind: text for _, kind, text in BLOCK.findall(above + section)}
    script = {key: reply_of(told) for key, told in yaml.safe_load(blocks["replies"]).items()}
    options = yaml.safe_load(blocks.get("team", "{}"))
    limits = Limits(**options.pop("limits", {}))
    members = options.pop("members", {"payer": {"intended_use": "Pays invoices."}})
    command = blocks["console"].partition("\n")[0]
    given = {"messages": [("user", command.removeprefix("$ ask "))]}
    given |= {"plan": blocks["plan.md"]} if "plan.md" in blocks else {}
    with on_script(script) as model:
        own = [Specialist(name, run=done, **card) for name, card in members.items()]
        if [*members] == ["payer"]:
            chat = getattr(model, "chat", model)
            own += [
                Specialist("researcher", "Finds facts.", chat_model=chat),
                Specialist("analyst", "Compares things.", chat_model=chat),
            ]
        graph = team(model, specialists=own, limits=limits, **options)
        try:
            events = [event async for event in stream(graph, given)]
            lines = [*calls(model, events), *results(model, events), *end(events)]
        except InputError as refused:
            lines = [f"refused: {refused}"]
    lines = [command, *lines]
    told = "".join(f"{line}\n" for line in lines)
    return section.replace(f"```console\n{blocks['console']}```", f"```console\n{told}```")


@pytest.mark.parametrize(
    ("page", "name"), SESSIONS, ids=[f"{page.stem}: {name}" for page, name in SESSIONS]
)
async def test_of_what_models_say_becomes_what_the_page_has(page, name, on_script, team):
    sections = sections_of(page)
    told = sections[name]
    now = await carried_out(sections[""], told, on_script, team)
    if os.environ.get("REPLAN_TEST_WRITE_SNAPSHOTS"):
        page.write_text(page.read_text("utf-8").replace(told, now), "utf-8")
        told = now
    assert now == told
