# The public names: `__init__.py` loads each from the module that it is imported from here.
from replan.state.results import (
    ActionType as ActionType,
    CollectedResults as CollectedResults,
    ExecutionRecord as ExecutionRecord,
    FeedbackResult as FeedbackResult,
    TaskComplexity as TaskComplexity,
    ThinkingResult as ThinkingResult,
)
