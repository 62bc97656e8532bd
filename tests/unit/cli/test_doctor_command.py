"""`replan doctor`: the parts that are installed, and what installs the others."""

import pytest
from typer.testing import CliRunner

from replan.cli import doctor
from replan.cli.main import app

OWN = {"replan": ['pydantic>=2; extra == "there"', 'nothing-of-this-name>=1; extra == "gone"']}
FAR = {
    "replan": ['pydantic[own]>=2; extra == "far"'],
    "pydantic": ['nothing-of-this-name>=1; extra == "own"'],
}


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (OWN, "ok      installed parts: there"),
        (OWN, '-       part gone: without nothing-of-this-name; pip install "replan[gone]"'),
        (FAR, "part far: without nothing-of-this-name"),
    ],
    ids=["there", "missing", "a part of another package"],
)
def test_a_part_is_there_or_comes_with_what_installs_it(wanted, told, tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "requires", wanted.get)
    words = ["doctor", "--storage", str(tmp_path / "runs.db")]
    assert told in CliRunner().invoke(app, words).stdout
