"""What the keyless team can do, as tools for a model."""

import pytest

from replan_local import local_tools


@pytest.fixture
def call(folder, tmp_path):
    (folder / "care.txt").write_text("Owls are fed at night.\n")
    tools = {tool.name: tool for tool in local_tools(folder, tmp_path / "out")}
    return lambda name, **given: tools[name].invoke(given)


def test_each_tool_does_what_the_command_does(call, tmp_path):
    assert "in SQL sites: site (varchar), area (decimal(4,1))" in call("query_tables")
    assert "| 36 |" in call("query_tables", sql="SELECT sum(seen) AS seen FROM sightings;")
    assert "> (`care.txt:1`)" in call("search_notes", query="night owls", top=1)
    assert call("calculate", expression="12.5 % of 80") == "12.5 % of 80 = 10"
    told = call("write_report", title="Owls & more", text="One.")
    (path,) = (tmp_path / "out").iterdir()
    assert told == f"**Owls & more**: written to `{path}`."
    assert "\n\nOne.\n\n" in path.read_text()
