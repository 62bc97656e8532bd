"""Whole runs of a sample of the corpus: the reply first, then a model that replies as it should."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator

from replies_reading import difference
from reply_families.drawing import Item, Task
from reporting import Row

from replan import ExecutionContext, Host, Specialist, Team, build_graph, run
from replan.testing import ScriptedModel, always

COMPLETE = "---\nverdict: complete\n---\nThe answer."
_MOST = 2
"""Runs of one family."""


def played(items: Iterable[Item], *, hidden: bool) -> list[Row]:
    """Play some replies of each family through the graph, and tell how the runs went."""
    grades: Counter[str] = Counter()
    calls: Counter[int] = Counter()
    faulty: Counter[tuple[str, str]] = Counter()
    for item in _sample(items):
        grade, count = asyncio.run(_played(item))
        grades[grade] += 1
        calls[count] += 1
        if grade not in ("right at once", "right after one more call"):
            faulty[item.name, grade] += 1
    rows: list[Row] = [
        {"table": "How the runs went", "runs": grade, "count": count}
        for grade, count in grades.most_common()
    ]
    rows += [
        {"table": "Calls of the host", "calls": count, "runs": runs}
        for count, runs in sorted(calls.items())
    ]
    shown = [] if hidden else faulty
    return rows + [{"table": "Not right", "reply": name, "grade": grade} for name, grade in shown]


def _sample(items: Iterable[Item]) -> Iterator[Item]:
    taken: Counter[str] = Counter()
    for item in items:
        wanted = item.reader == "think" and item.meant.outcome in ("plan", "answer", None)
        if wanted and (item.wording + len(item.language)) % 4 == 0 and taken[item.family] < _MOST:
            taken[item.family] += 1
            yield item


async def _played(item: Item) -> tuple[str, int]:
    tasks = item.meant.tasks
    good = _answer(item.meant.text or "Lima.") if not tasks else _plan(tasks)
    replies = {
        "think": [item.text, always(good)],
        "plan_creation": always(good),
        "direct_answer": always(item.meant.text or "Lima."),
        "feedback": always(COMPLETE),
        "final_answer": always("The answer."),
    }
    model = ScriptedModel(replies)
    team = [Specialist(name=name, intended_use="Works.", run=_work) for name in item.team]
    graph = build_graph(Team(host=Host(model=model), specialists=team))
    try:
        state = (await run(graph, "Go.")).state
    except Exception as error:  # noqa: BLE001 - the benchmark counts them
        return f"error: {type(error).__name__}", len(model.calls)
    asked = len(model.calls) - (2 if tasks else 1)
    plan = state.get("current_plan")
    if tasks:
        fault = difference(plan, tasks) if plan else "no plan"
    else:
        text = state["final_answer"].text
        fault = "" if text.strip() in (item.meant.text.strip(), "Lima.") else f"says {text!r}"
    if not fault:
        is_once = asked <= 0
        return ("right at once" if is_once else "right after one more call"), len(model.calls)
    return ("told" if state["unreadable_replies"] else f"wrong: {fault}"), len(model.calls)


def _work(context: ExecutionContext) -> str:
    return f"done {context.plan_step.id}"


def _answer(text: str) -> str:
    return f"---\ncomplexity: simple\n---\n{text}"


def _plan(tasks: tuple[Task, ...]) -> str:
    lines = [
        f"- [ ] {at}. {task.text} @{task.who}"
        + (f" (after {', '.join(map(str, task.after))})" if task.after else "")
        for at, task in enumerate(tasks, 1)
    ]
    return "---\ncomplexity: complex\n---\n" + "\n".join(lines)
