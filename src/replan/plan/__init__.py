"""Plans as values: the Markdown document, what can run, changes, history and progress."""

from replan.plan.applying import apply as apply, apply_valid as apply_valid, replay as replay
from replan.plan.changes import (
    AddStep as AddStep,
    ModifyPlan as ModifyPlan,
    ModifyStep as ModifyStep,
    PlanChange as PlanChange,
    RemoveStep as RemoveStep,
    ReorderSteps as ReorderSteps,
    compare as compare,
    update_type as update_type,
)
from replan.plan.conflicts import WriteConflict as WriteConflict, write_conflicts as write_conflicts
from replan.plan.dependencies import (
    Readiness as Readiness,
    blocked_steps as blocked_steps,
    readiness as readiness,
    ready_steps as ready_steps,
    settle_conditions as settle_conditions,
    skippable_steps as skippable_steps,
    unmet_steps as unmet_steps,
)
from replan.plan.markdown.document import (
    PlanDocument as PlanDocument,
    looks_like_plan as looks_like_plan,
    parse_plan_from_markdown as parse_plan_from_markdown,
    refresh_content as refresh_content,
)
from replan.plan.markdown.normal import normalised as normalised, normalised_step as normalised_step
from replan.plan.markdown.rendering import render as render, render_for_model as render_for_model
from replan.plan.markdown.seal import (
    fingerprint as fingerprint,
    sealed as sealed,
    unsealed as unsealed,
)
from replan.plan.merging import as_new_plan as as_new_plan, merge_revision as merge_revision
from replan.plan.model import (
    Author as Author,
    Condition as Condition,
    PlanStep as PlanStep,
    PlanUpdate as PlanUpdate,
    PlanUpdateType as PlanUpdateType,
    StepStatus as StepStatus,
    TaskPlan as TaskPlan,
    Value as Value,
)
from replan.plan.order import (
    critical_length as critical_length,
    critical_path as critical_path,
    run_order as run_order,
    width as width,
)
from replan.plan.progress import (
    made_progress as made_progress,
    repeats_revision as repeats_revision,
)
from replan.plan.rerun import Rerun as Rerun, reopened as reopened, rerun_reasons as rerun_reasons
from replan.plan.statuses import (
    excerpt as excerpt,
    step_outcome as step_outcome,
    with_statuses as with_statuses,
)
