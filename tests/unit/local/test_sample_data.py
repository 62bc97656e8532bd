"""The sample tables are what their script makes."""

import runpy
from pathlib import Path

SAMPLES = Path(__file__).parents[3] / "examples" / "data"


def test_the_script_makes_the_committed_files_again(tmp_path):
    copy = tmp_path / "make_sample_data.py"
    copy.write_bytes((SAMPLES / "make_sample_data.py").read_bytes())
    runpy.run_path(str(copy), run_name="__main__")
    for name in ("sales.csv", "returns.csv"):
        assert (tmp_path / name).read_bytes() == (SAMPLES / name).read_bytes()


def test_the_readme_states_the_rows_and_the_licence():
    readme = (SAMPLES / "README.md").read_text()
    for name in ("sales.csv", "returns.csv"):
        rows = len((SAMPLES / name).read_text().splitlines()) - 1
        assert f"| `{name}` | {rows} |" in readme
    assert "CC0" in readme


def test_the_readme_names_every_note():
    readme = (SAMPLES / "README.md").read_text()
    notes = sorted((SAMPLES / "notes").iterdir())
    assert notes
    assert all(f"`notes/{note.name}`" in readme for note in notes)
