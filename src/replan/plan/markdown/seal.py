"""Fingerprints of the tasks of settled steps, in one comment line of the document.

    <!-- replan: 1=3fa9c1d2 2=90b1e077 run=5b0c -->

The line is at the end, where readers of the document do not see it. Each pair is the id of a
settled step and a fingerprint of what it was asked, so that a later reader of the document alone
can tell which steps were edited since. If the document has excerpts of results, the last word is
the run that has the whole ones. The line is not part of the plan, as no comment is.
"""

import hashlib
import json
import re
from collections.abc import Iterator

from replan.plan.markdown.lines import Line, parts, split_lines, usual_line_end, without_comments
from replan.plan.markdown.rendering import normalised_step
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.option_table import set_options

LENGTH = 8
"""Digits of a fingerprint: two different tasks share one in four billion cases."""

# Two hyphens side by side may end a comment.
_RUN = re.compile(r"[\w.:]+(?:-[\w.:]+)*", re.ASCII)
_SEAL = re.compile(
    r"<!--[ \t]*replan:(?P<pairs>(?:[ \t]+\d{1,18}=[0-9a-f]+)*)"
    rf"(?:[ \t]+run=(?P<run>{_RUN.pattern}))?[ \t]*-->[ \t]*",
    re.ASCII,
)
_PAIR = re.compile(r"(\d{1,18})=([0-9a-f]+)")
_encode = json.JSONEncoder(sort_keys=True).encode


def fingerprint(step: PlanStep) -> str:
    """Return a short fingerprint of the task of a step.

    That is its description, brief and parameters, what it waits for and on which condition, and
    its specialists. How it is spaced, in which order it says things, comments, and when and how
    often it is tried (priority, retries, timeout) make no difference.
    """
    step = normalised_step(step)
    condition = step.condition
    asked = {
        "description": " ".join(without_comments(step.description).split()),
        "brief": _shown_brief(step.brief),
        "parameters": step.parameters,
        "awaits": sorted(step.awaits),
        "condition": None if condition is None else [condition.step, condition.outcome],
        "specialists": sorted({name.casefold() for name in step.specialists}),
        **set_options(step, "task"),
    }
    written = _encode(asked)
    return hashlib.sha256(written.encode()).hexdigest()[:LENGTH]


def read_fingerprints(text: str) -> dict[int, str]:
    """Read the fingerprints that a document holds, by step; of several lines the last counts."""
    pairs = (_PAIR.findall(seal["pairs"]) for seal in _seals(text))
    return {int(step_id): digest for found in pairs for step_id, digest in found}


def origin_of(text: str) -> str:
    """The run that has the whole results of a document; empty if its last seal names none."""
    seals = list(_seals(text))
    return (seals[-1]["run"] or "") if seals else ""


def _seals(text: str) -> Iterator[re.Match[str]]:
    lines = split_lines(text) if "<!--" in text else []
    return filter(None, (_SEAL.fullmatch(line.text) for line in lines))


def sealed(plan: TaskPlan, run_id: str = "", *, is_named: bool = False) -> TaskPlan:
    """Return the plan with the fingerprints of its settled steps at the end of its document.

    Nothing else of the document changes: `unsealed` gives it back byte for byte.

    Args:
        plan: The plan.
        run_id: The run that has the whole results; empty: the one that the document names.
        is_named: Whether to name the run also where the document has all results whole.
    """
    text = unsealed(plan.content)
    pairs = [f"{step.id}={fingerprint(step)}" for step in plan.steps if not step.status.is_open]
    run_id = run_id or origin_of(plan.content)
    has_rest = is_named or any(step.is_cut for step in plan.steps)
    if has_rest and _RUN.fullmatch(run_id):
        pairs.append(f"run={run_id}")
    if pairs and text:
        end = usual_line_end(split_lines(text)) if "\r" in text else "\n"
        seal = f"<!-- replan: {' '.join(pairs)} -->"
        text += f"{seal}{end}" if text.endswith(("\r", "\n")) else f"{end}{seal}"
    return plan if text == plan.content else plan.replace(content=text)


def unsealed(text: str) -> str:
    """Return a document without the line of its fingerprints."""
    if "<!--" not in text:
        return text
    kept: list[Line] = []
    for line in split_lines(text):
        if _SEAL.fullmatch(line.text) is None:
            kept.append(line)
        elif not line.end and kept:
            # The document had no line end before it was sealed.
            kept[-1] = Line(kept[-1].text, "")
    return "".join(map(str, kept))


def _shown_brief(brief: str) -> str:
    """Return a brief without comments, and without spacing that Markdown does not show."""
    if not brief:
        return ""
    lines = brief.split("\n")
    shown: list[str] = []
    text: list[str] = []
    for block, start, end in parts(lines):
        if block is None or block.mark == "<!--":
            text += lines[start:end]
        else:
            shown += [*_tidied(text), lines[start].strip(), *lines[start + 1 : end]]
            text = []
    return "\n".join([*shown, *_tidied(text)]).strip("\n")


def _tidied(lines: list[str]) -> Iterator[str]:
    """Yield the lines of free text: no comments, no blank lines, one blank between words."""
    for line in without_comments("\n".join(lines)).split("\n"):
        words = line.split()
        if words:
            yield line[: len(line) - len(line.lstrip())] + " ".join(words)
