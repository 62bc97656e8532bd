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
