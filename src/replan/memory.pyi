# The public names: `memory.py` loads each from the module that it is imported from here.
from replan.runs.summaries import (
    read_summary as read_summary,
    reset_summary as reset_summary,
    summarise as summarise,
)
from replan.state.conversation.facts import Fact as Fact
from replan.state.options import Summary as Summary
