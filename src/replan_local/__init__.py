"""A team that works without a model, what it can do as tools, and a host of fixed rules.

Team files name what is here as they name any module: `use: replan_local:data_analyst`,
`tools: [replan_local:query_tables]`. In Python: `build_graph(local_team("data"))`.
"""

from replan_local.host.model import OfflineModel
from replan_local.specialists import calculator, data_analyst, librarian, local_team, writer
from replan_local.tools import calculate, local_tools, query_tables, search_notes, write_report

__all__ = [
    "OfflineModel",
    "calculate",
    "calculator",
    "data_analyst",
    "librarian",
    "local_team",
    "local_tools",
    "query_tables",
    "search_notes",
    "write_report",
    "writer",
]
