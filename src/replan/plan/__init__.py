"""Plans as values: the Markdown document, what can run, changes, history and progress."""

from replan.plan.applying import apply, apply_valid, replay
from replan.plan.changes import Addition, PlanChanges, compare
from replan.plan.conflicts import WriteConflict, write_conflicts
from replan.plan.dependencies import (
    Readiness,
    blocked_steps,
    readiness,
    ready_steps,
    settle_conditions,
    skippable_steps,
    unmet_steps,
)
from replan.plan.markdown.document import (
    PlanDocument,
    looks_like_plan,
    parse_plan_from_markdown,
    refresh_content,
)
from replan.plan.markdown.rendering import normalised, normalised_step, render, render_for_model
from replan.plan.markdown.seal import (
    fingerprint,
    sealed,
    unsealed,
)
from replan.plan.merging import as_new_plan, merge_revision
from replan.plan.model import (
    Author,
    Condition,
    PlanStep,
    PlanUpdate,
    PlanUpdateType,
    StepStatus,
    TaskPlan,
    Value,
)
from replan.plan.order import (
    critical_length,
    critical_path,
    run_order,
    width,
)
from replan.plan.rerun import Rerun, reopened, rerun_reasons
from replan.plan.statuses import (
    excerpt,
    made_progress,
    repeats_revision,
    with_statuses,
)

__all__ = [
    "Addition",
    "Author",
    "Condition",
    "PlanChanges",
    "PlanDocument",
    "PlanStep",
    "PlanUpdate",
    "PlanUpdateType",
    "Readiness",
    "Rerun",
    "StepStatus",
    "TaskPlan",
    "Value",
    "WriteConflict",
    "apply",
    "apply_valid",
    "as_new_plan",
    "blocked_steps",
    "compare",
    "critical_length",
    "critical_path",
    "excerpt",
    "fingerprint",
    "looks_like_plan",
    "made_progress",
    "merge_revision",
    "normalised",
    "normalised_step",
    "parse_plan_from_markdown",
    "readiness",
    "ready_steps",
    "refresh_content",
    "render",
    "render_for_model",
    "reopened",
    "repeats_revision",
    "replay",
    "rerun_reasons",
    "run_order",
    "sealed",
    "settle_conditions",
    "skippable_steps",
    "unmet_steps",
    "unsealed",
    "width",
    "with_statuses",
    "write_conflicts",
]
