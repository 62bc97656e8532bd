"""The outlook of a job: the needs of its commands, and the most turns that it takes."""

from typing import Any

from replan.jobs.spec.job_spec import JobSpec
from replan.state.limits import Limits
from replan.views.cells import counted


def job_outlook(spec: JobSpec) -> dict[str, Any]:
    """What is ahead, for programs."""
    return {
        "job": spec.name,
        "version": spec.version,
        "languages": list(spec.languages),
        "slots": [slot.name for slot in spec.slots],
        "commands": [
            {
                **command.model_dump(mode="json", include={"name", "needs", "takes", "action"}),
                "effects": spec.effects_of(command),
                "confirmed": spec.is_confirmed(command),
            }
            for command in spec.commands
        ],
        "max_turns": spec.max_turns,
        "max_asks": spec.max_asks,
        "max_corrections": spec.max_corrections,
        "max_questions": Limits().max_questions,
    }


def job_lines(spec: JobSpec) -> list[str]:
    """What is ahead, for people."""
    counts = f"{counted(len(spec.slots), 'slot')}, {counted(len(spec.commands), 'command')}"
    spoken = " and ".join(spec.languages)
    lines = [f"job {spec.name}, version {spec.version}, speaks {spoken}: {counts}"]
    for each in spec.commands:
        takes = f"; takes {', '.join(each.takes)}" if each.takes else ""
        confirmed = ", confirmed" if spec.is_confirmed(each) else ""
        needs = ", ".join(spec.in_order(each.needs)) or "nothing"
        how = f"{each.action} ({spec.effects_of(each)}{confirmed})"
        lines.append(f"  {each.name}: needs {needs}{takes}; {how}")
    lines.append(
        f"at most {spec.max_turns} turns: it stops after {counted(spec.max_asks, 'question')} in a "
        f"row without progress, and if more than {counted(spec.max_corrections, 'value')} change"
    )
    most = Limits().max_questions
    if spec.max_turns > most:
        lines.append(
            f"in a plan, a run asks at most {most} questions unless max_questions says more: "
            "the step fails there"
        )
    return lines
