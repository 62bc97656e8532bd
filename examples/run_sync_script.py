"""A plain script: one command for the keyless team, its answer, and an exit code.

    python examples/run_sync_script.py "total revenue by product from sales.csv top 2"

It is not asynchronous and needs no model: the team computes with DuckDB (extra `local`), and
the offline model, or the one of REPLAN_MODEL, plans and joins the results.
"""

import os
import sys
from pathlib import Path

from replan import build_graph, run_sync
from replan_local import local_team

FOLDER = Path(__file__).parent / "data"
request = " ".join(sys.argv[1:]) or "total revenue by region from sales.csv"
graph = build_graph(local_team(FOLDER, model=os.environ.get("REPLAN_MODEL", "offline")))
result = run_sync(graph, request)
print(result.text)
sys.exit(0 if result.outcome in {"answered", "completed"} else 1)
