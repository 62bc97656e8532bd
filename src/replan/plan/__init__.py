"""Plans as values: the Markdown document, what can run, changes, history and progress."""

from replan.plan.applying import apply, apply_valid
from replan.plan.changes import (
    AddStep,
    ModifyPlan,
    ModifyStep,
    PlanChange,
    RemoveStep,
    ReorderSteps,
    compare,
    extract_plan_changes,
    update_type,
)
from replan.plan.conflicts import WriteConflict, write_conflicts
from replan.plan.dependencies import (
    Readiness,
    blocked_steps,
    find_next_executable_step,
    readiness,
    ready_steps,
    settle_conditions,
    skippable_steps,
    unmet_steps,
)
from replan.plan.feedback import (
    PlanFeedback,
    create_step_from_feedback,
    modify_existing_step,
    reorder_steps,
    update_plan_dynamically,
)
from replan.plan.history import replay
from replan.plan.markdown.document import (
    PlanDocument,
    looks_like_plan,
    parse_plan_from_markdown,
    refresh_content,
)
from replan.plan.markdown.normal import normalised, normalised_step
from replan.plan.markdown.rendering import render, render_for_model
from replan.plan.markdown.seal import fingerprint, sealed, unsealed
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
from replan.plan.order import critical_length, critical_path, find_cycle, run_order
from replan.plan.progress import made_progress, repeats_revision
from replan.plan.rerun import Rerun, reopened, rerun_reasons
from replan.plan.revision import next_free_id
from replan.plan.statuses import excerpt, step_outcome, update_step_status, with_statuses
from replan.plan.width import width

__all__ = [
    "AddStep",
    "Author",
    "Condition",
    "ModifyPlan",
    "ModifyStep",
    "PlanChange",
    "PlanDocument",
    "PlanFeedback",
    "PlanStep",
    "PlanUpdate",
    "PlanUpdateType",
    "Readiness",
    "RemoveStep",
    "ReorderSteps",
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
    "create_step_from_feedback",
    "critical_length",
    "critical_path",
    "excerpt",
    "extract_plan_changes",
    "find_cycle",
    "find_next_executable_step",
    "fingerprint",
    "looks_like_plan",
    "made_progress",
    "merge_revision",
    "modify_existing_step",
    "next_free_id",
    "normalised",
    "normalised_step",
    "parse_plan_from_markdown",
    "readiness",
    "ready_steps",
    "refresh_content",
    "render",
    "render_for_model",
    "reopened",
    "reorder_steps",
    "repeats_revision",
    "replay",
    "rerun_reasons",
    "run_order",
    "sealed",
    "settle_conditions",
    "skippable_steps",
    "step_outcome",
    "unmet_steps",
    "unsealed",
    "update_plan_dynamically",
    "update_step_status",
    "update_type",
    "width",
    "with_statuses",
    "write_conflicts",
]
