"""What `replan show` writes through, and what it refuses to look for."""

from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cases import cases_of
from replan.cli.main import app
from replan.errors import InputError
from replan.views.paged import paged

CASES = cases_of(__file__)


def test_a_pager_that_is_no_command_is_told(monkeypatch):
    monkeypatch.setenv("PAGER", 'less "')
    monkeypatch.setenv("TERM", "xterm")
    window, output = Console(force_terminal=True, file=StringIO()), StringIO()
    with pytest.raises(InputError, match="PAGER=less"), paged(window, output, plain=False):
        pytest.fail("Nothing can be shown.")
    with paged(window, output, plain=True) as write:
        write("shown")
    assert output.getvalue() == "shown"


@pytest.mark.parametrize(
    "words",
    CASES["commands"],
    ids=" ".join,
)
def test_a_storage_that_is_not_there_is_named_and_not_made(tmp_path, words):
    missing = tmp_path / "mistyped.db"
    done = CliRunner().invoke(app, [*words, "--storage", str(missing)])
    assert done.exit_code == 2
    assert f"There is no storage '{missing}'" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["run", "Hello."], ["chat"], ["serve"], ["ui"]], ids=" ".join)
@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
def test_a_folder_that_is_not_there_is_not_made_for_a_new_storage(tmp_path, words, form):
    missing = tmp_path / "mistyped" / "runs.db"
    done = CliRunner().invoke(app, [*words, "--storage", form.format(missing)])
    assert done.exit_code == 2
    assert f"There is no folder '{missing.parent}'" in done.stderr
    assert list(tmp_path.iterdir()) == []
