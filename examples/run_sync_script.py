"""A plain script: one question to the local team, its answer, and an exit code.

    python examples/run_sync_script.py "Top 2 products by revenue from sales.csv"

It is not asynchronous and needs no model: the local team computes with DuckDB (extra `local`), and
the offline model, or the one of REPLAN_MODEL, plans and joins the results.
"""

import os
import sys
from pathlib import Path

from replan import run_sync
from replan.assembly import local_graph

FOLDER = Path(__file__).parent / "data"
request = " ".join(sys.argv[1:]) or "Total the revenue by region from sales.csv"
graph = local_graph(directory=FOLDER, model=os.environ.get("REPLAN_MODEL", "offline"))
state = run_sync(graph, request)
print(state["final_answer"].text)
sys.exit(0 if state["outcome"] in {"answered", "completed"} else 1)
