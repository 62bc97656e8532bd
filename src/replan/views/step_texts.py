"""What is said of a step of a plan, whoever shows it."""

from replan.plan.model import PlanStep


def waits_in_words(step: PlanStep) -> list[str]:
    """What a step waits for, as its line of the plan says it: `after 1, 2`, `if 3 failed`."""
    condition = step.condition
    after = [f"after {', '.join(map(str, step.dependencies))}"] if step.dependencies else []
    return [*after, *([f"if {condition.step} {condition.outcome}"] if condition else [])]
