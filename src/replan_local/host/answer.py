"""Join results into an answer that says what was done, what was found and what is missing."""

from replan_local.host.progress import Finding, Progress
from replan.plan.model import PlanStep


def join_results(progress: Progress) -> str:
    """Write the answer of a run in Markdown."""
    done = [step for step in progress.plan.steps if progress.state_of(step) == "done"]
    shown = [(step, _text_of(progress, step)) for step in done]
    parts = [_opening(progress, done)]
    parts += [f"## {_heading(step)}\n\n{text}" for step, text in shown if text]
    parts += [_stray(finding) for finding in _without_step(progress)]
    if gaps := _gaps(progress):
        parts.append("## What is missing\n\n" + "\n".join(gaps))
    return "\n\n".join(parts)


def gaps_in_one_line(progress: Progress) -> str:
    """Say in a sentence which required steps failed; empty if none did."""
    failed = ", ".join(
        str(step.id) for step in progress.unmet() if progress.state_of(step) == "failed"
    )
    return f"Failed for good: step {failed}." if failed else ""


def _opening(progress: Progress, done: list[PlanStep]) -> str:
    total = len(progress.plan.steps)
    if not total:
        return "These are the results." if progress.findings else "There are no results."
    if not done:
        if total == 1:
            return "The one step of the plan gave no result."
        return f"None of the {total} steps of the plan gave a result."
    count = f"{len(done)} of {total} steps" if total > 1 else "The one step"
    verb = "are" if total > 1 else "is"
    names = dict.fromkeys(
        finding.specialist
        for step in done
        for finding in progress.findings_of(step)
        if finding.specialist and finding.is_of_use
    )
    return f"{count} {verb} done" + (f", by {', '.join(names)}." if names else ".")


def _text_of(progress: Progress, step: PlanStep) -> str:
    useful = [finding for finding in progress.findings_of(step) if finding.is_of_use]
    if len(useful) <= 1:
        return "".join(_shown(finding) for finding in useful)
    return "\n\n".join(f"**{finding.specialist}**\n\n{_shown(finding)}" for finding in useful)


def _shown(finding: Finding) -> str:
    """The text of a result; a list of files behind it is left out if the text names them all."""
    text, files, names = finding.text.strip().rpartition("\n\nFiles: ")
    if files and "\n" not in names and all(name in text for name in names.split(", ")):
        return text
    return finding.text.strip()


def _heading(step: PlanStep) -> str:
    return f"{step.id}. {step.description}" if step.description else f"Step {step.id}"


def _without_step(progress: Progress) -> list[Finding]:
    known = {step.id for step in progress.plan.steps}
    return [
        finding for finding in progress.findings if finding.step not in known and finding.is_of_use
    ]


def _stray(finding: Finding) -> str:
    return f"## {finding.specialist or 'Result'}\n\n{_shown(finding)}"


def _gaps(progress: Progress) -> list[str]:
    """What the answer lacks, without what the graph's last node adds by rule: see `unmet_steps`."""
    told = {step.id for step in progress.unmet()}
    lines: list[str] = []
    for step in progress.plan.steps:
        state = progress.state_of(step)
        if step.id in told or state == "done":
            continue
        if state == "failed":
            lines.append(f"- {_heading(step)}: failed. {progress.error_of(step)}".rstrip())
        elif state == "open":
            lines.append(f"- {_heading(step)}: not done.")
        else:
            lines.append(f"- {_heading(step)}: skipped.")
    lines += [f"- {text}: nobody in the team does this." for text in progress.not_planned()]
    return lines
