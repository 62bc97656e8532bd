"""`replan memory` with what no page of transcripts can hold."""

import json

from typer.testing import CliRunner

from replan.cli.main import app


def test_a_name_that_is_no_text_is_written_as_json_escapes_it(tmp_path, monkeypatch):
    monkeypatch.setenv("REPLAN_STORAGE", str(tmp_path / "runs.db"))
    file = tmp_path / "odd.json"
    for words in (["run", "calculate 1 + 1"], ["memory", "export", "-o", file, "--user", "\udcff"]):
        assert CliRunner().invoke(app, [*map(str, words)]).exit_code == 0
    assert json.loads(file.read_text())["user"] == "\udcff"
