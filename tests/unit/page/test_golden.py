"""What the page draws of runs, as its golden files have it."""

from pathlib import Path

import pytest

from golden import as_yaml, check_golden
from replan.cli.page.plan_graph import graph_of
from replan.views.run.history import lines_of
from replan.views.run.timeline import timeline_of
from shown_runs import RUNS


def revisions(run):
    return [
        {"by": each.by, "version": each.version, "lines": lines_of(each)} for each in run.revisions
    ]


DRAWN = {
    "graph": graph_of,
    "timeline": timeline_of,
    "revisions": revisions,
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_drawing_is_that_of_its_golden_file(name):
    drawn = {run: as_yaml(DRAWN[name](RUNS[run])) for run in RUNS}
    check_golden(Path(__file__).parent / "golden" / f"{name}.txt", drawn)
