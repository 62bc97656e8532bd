"""The host's judgement of a round: complete with an answer, continue with a plan, words or nothing."""

import json

from reply_families.answers import text_of
from reply_families.drawing import Drawing, Item, Meant, family


def done(d: Drawing, form: str, *, ask: bool = False) -> Item:
    """A reply that ends the work; `{a}` stands for the answer."""
    text = text_of(d)
    front = d.head("verdict", "complete")
    written = (
        form.replace("{front}", front)
        .replace("{a}", text)
        .replace("{thought}", d.say(d.own.thoughts))
        .replace("{key}", d.own.verdict[0])
        .replace("{value}", d.own.complete[d.index % len(d.own.complete)])
    )
    return d.item("feedback", written, Meant("complete", text=text, ask_is_right=ask))


def more(d: Drawing, text: str) -> Item:
    """A reply that goes on with the plan as it is."""
    return d.item("feedback", text, Meant("continue"))


def revised(d: Drawing, text: str) -> Item:
    """A reply that goes on with the drawn plan."""
    return d.item("feedback", text, Meant("plan", d.tasks))


@family
def complete_plain(d: Drawing) -> Item:
    """The final answer as it should be."""
    return done(
        d,
        d.pick(
            "{front}{a}",
            "{front}\n{a}\n",
            "verdict: complete\n\n{a}",
            "**verdict:** complete\n\n{a}",
        ),
    )


@family
def complete_in_other_words(d: Drawing) -> Item:
    """The verdict in other words."""
    return done(
        d,
        "---\n"
        + d.pick(
            "verdict: done",
            "status: completed",
            "should_continue: false",
            "is_complete: true",
            "verdict: finished",
            "verdict: COMPLETE.",
            "verdict: satisfied",
            "decision: complete",
            "verdict: all steps are done",
            "done: yes",
        )
        + "\n---\n{a}",
    )


@family
def complete_translated(d: Drawing) -> Item:
    """The verdict in the language."""
    return done(
        d,
        d.pick(
            "---\n{key}: {value}\n---\n{a}",
            "---\nverdict: {value}\n---\n{a}",
            "{key}: {value}\n\n{a}",
        ),
    )


@family
def complete_wrapped(d: Drawing) -> Item:
    """Thoughts, fences and tokens around the judgement."""
    return done(
        d,
        d.pick(
            "<think>{thought}</think>\n{front}{a}",
            "{front}<think>{thought}</think>\n{a}",
            "{front}{a}</s>",
            "{front}{a}\n\n<think>{thought}</think>",
            "<analysis>{thought}</analysis>\n{front}{a}",
            "<answer>\n{front}{a}\n</answer>",
            "{front}{a}<|im_end|>",
        ),
    )


@family
def complete_in_json(d: Drawing) -> Item:
    """The judgement in JSON."""
    text = text_of(d)
    value = {
        "verdict": "complete",
        "feedback": "x",
        d.pick("answer", "final_answer", "body", "response"): text,
    }
    return d.item("feedback", json.dumps(value, ensure_ascii=False), Meant("complete", text=text))


@family
def complete_without_label(d: Drawing) -> Item:
    """An answer without a verdict: it may be taken or asked about."""
    return done(d, "{a}", ask=True)


@family
def continue_plain(d: Drawing) -> Item:
    """The plan goes on as it is."""
    return more(
        d,
        d.head("verdict", "continue")
        + d.pick("", "none", "(no changes)", "(empty)", "The plan stays as it is."),
    )


@family
def continue_in_other_words(d: Drawing) -> Item:
    """The verdict in other words."""
    verdict = d.pick(
        "verdict: go on",
        "verdict: not complete",
        "should_continue: true",
        "verdict: in progress",
        "verdict: incomplete",
        "is_complete: false",
        "verdict: proceed",
        "status: unfinished",
        f"verdict: {d.own.goes_on[0]}",
        f"{d.own.verdict[0]}: {d.own.goes_on[1]}",
    )
    return more(
        d, f"---\n{verdict}\nsuggested_action: execute_step\nupdate: none\nfeedback: x\n---"
    )


@family
def continue_in_json(d: Drawing) -> Item:
    """The judgement in JSON, with a plan or without one."""
    value: dict[str, object] = {"verdict": "continue", "feedback": "x", "update": "none"}
    if d.index % 2:
        return more(d, json.dumps(value))
    steps = [
        {"id": n, "description": t.text, "assigned_to": t.who, "dependencies": list(t.after)}
        for n, t in enumerate(d.tasks, 1)
    ]
    return revised(
        d,
        json.dumps(
            value | {"update": "more", d.pick("plan", "revised_plan", "steps"): steps},
            ensure_ascii=False,
        ),
    )


@family
def revised_plain(d: Drawing) -> Item:
    """The revised plan as it should be, also with marks of what was done."""
    return revised(
        d,
        f"---\nverdict: continue\nsuggested_action: update_plan\nupdate: {d.own.revision[0]}\n---\n"
        + d.titled(d.listed()),
    )


@family
def revised_in_other_forms(d: Drawing) -> Item:
    """The revised plan as table, YAML or without boxes."""
    rows = ["| # | Task | Specialist | After |", "|---|---|---|---|"]
    rows += [f"| {n} | {t.text} | {t.who} | {d.ids(t) or '-'} |" for n, t in enumerate(d.tasks, 1)]
    yaml = "\n".join(
        f'- id: {n}\n  task: "{t.text}"\n  specialist: {t.who}\n  depends_on: [{d.ids(t)}]'
        for n, t in enumerate(d.tasks, 1)
    )
    plain = d.listed(lambda n, t: f"{n}. {t.text} @{t.who}{d.after(t)}")
    return revised(
        d,
        d.head("verdict", "continue")
        + d.pick(
            "\n".join(rows), yaml, plain, f"## Revised plan\n\n{plain}", f"```yaml\n{yaml}\n```"
        ),
    )


@family
def revised_in_words(d: Drawing) -> Item:
    """A change that is wanted in words only must be asked for as a plan."""
    words = d.say(d.own.revision)
    text = d.pick(
        d.head("verdict", "continue") + words,
        f"---\nverdict: continue\nsuggested_action: update_plan\nupdate: {words}\n---",
        f"---\nverdict: continue\nsuggested_action: update_plan\nfeedback: {words}\n---",
        f"---\nverdict: continue\nupdate: {words}\n---\n{words}",
        d.head("verdict", "revise") + words,
    )
    return d.item("feedback", text, Meant(None))


@family
def revised_as_difference(d: Drawing) -> Item:
    """A change as a diff or as one line with the rest left out must be asked for as a plan."""
    line = d.line(2, d.tasks[1])
    rest = d.pick(
        "- ... (rest unchanged)",
        "(steps 3 and 4 stay as they are)",
        "- [ ] ...",
        "... rest as before",
        "(the other steps remain unchanged)",
    )
    text = d.pick(f"```diff\n- {line}\n+ {line} again\n```", f"{line}\n{rest}", f"{rest}\n{line}")
    return d.item("feedback", d.head("verdict", "continue") + text, Meant(None))


@family
def verdict_unclear(d: Drawing) -> Item:
    """Nobody can know the verdict."""
    verdict = d.pick(
        "complete or continue",
        "maybe",
        "complete | continue",
        "complete, continue",
        "unclear",
        "complete/continue",
        "<complete|continue>",
        "perhaps done",
    )
    return d.item(
        "feedback", f"---\nverdict: {verdict}\nfeedback: x\n---\n{d.own.answers[0]}", Meant(None)
    )
