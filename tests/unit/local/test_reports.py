"""The writer puts results into one file, the same file for the same step, and never another's."""

import re

import pytest
from markdown_it import MarkdownIt

from replan import ExecutionStatus

COSTS = """\
**Total cost by team** (b.csv, 9 rows)

| team | cost |
| --- | ---: |
| x | 1 |
| y | 20 |

- Largest: y."""
AGES = "# Ages\n\nAll are young.\n\n```\n# no heading\n```"
HOSTILE = (
    "**T <img src=x onerror=alert(1)>**\n\n"
    "| name | n |\n| --- | ---: |\n"
    "| <script>x</script> | 1 |\n| ![p](http://evil.example/x.png) | 2 |\n| a < b | 3 |\n\n"
    "- \\<b>bold</b> \\![q](http://evil.example/y.png) ![r]\n\n"
    "```\n<iframe src=x>\n```\n\n    ```\n<svg onload=x>\n\n"
    "[r]: http://evil.example/z.png\n<!-- hidden --> <?x?>"
)


@pytest.fixture
def write(ask):
    async def run(text="write report", *, inputs=None, **given):
        found = {1: COSTS, 2: AGES} if inputs is None else inputs
        return await ask(text, who="writer", inputs=found, **given)

    return run


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


async def test_a_report_has_title_date_and_a_section_for_each_result(write, out):
    result = await write('write report "Costs and ages"')
    (artifact,) = result.artifacts
    (path,) = out.glob("*.md")
    text = path.read_text()
    assert re.match(r"# Costs and ages\n\n\d{4}-\d\d-\d\d\n\n## Step 1\n\n\*\*Total cost", text)
    assert "## Step 2\n\n# Ages\n\nAll are young." in text
    assert "\n# no heading\n" in text
    assert artifact.media_type == "text/markdown"
    assert artifact.path == str(path), "outside of the workspace, it is named in full"
    assert result.text == "**Costs and ages** is written."


async def test_a_report_shows_html_and_loads_no_picture(write, out):
    title = "<script>t</script> ![t](http://evil.example/t.png)"
    await write(inputs={1: HOSTILE}, title=title)
    (path,) = out.glob("*.md")
    html = MarkdownIt("commonmark").enable("table").render(path.read_text())
    # The last line of a report is our own mark.
    assert re.findall(r"<(?:script|b>|iframe|svg|\?|!--(?!  *written))", html) == []
    assert "<img" not in html
    assert "a &lt; b" in html


async def test_the_same_step_writes_the_same_file_again_and_no_other_one(write, out):
    first, second = await write(), await write(inputs={1: "better"})
    assert [file.path for file in first.artifacts] == [file.path for file in second.artifacts]
    (path,) = out.iterdir()
    assert "better" in path.read_text()
    await write(inputs={1: "yours"}, key="k2")
    assert len([*out.iterdir()]) == 2


@pytest.mark.parametrize(
    "title", ["../../etc/passwd", "/abs", "a/b\\c", "x\x00y", "..", "-rf", "报告", "é" * 500]
)
async def test_no_title_becomes_a_path(write, out, title):
    await write(title=title)
    (path,) = out.iterdir()
    assert set(path.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
    assert path.name.count(".") == 1
    assert not path.name.startswith("-")
    assert len(path.name) < 70


async def test_a_link_in_the_place_of_the_report_is_replaced_and_not_followed(write, out, tmp_path):
    await write()
    (path,) = out.iterdir()
    target = tmp_path / "precious.txt"
    target.write_text("keep")
    path.unlink()
    path.symlink_to(target)
    await write()
    assert target.read_text() == "keep"


@pytest.mark.parametrize("inputs", [{}, {1: "  \n"}])
async def test_nothing_to_report_is_a_failure_for_good(write, out, inputs):
    result = await write(inputs=inputs)
    assert result.status is ExecutionStatus.FAILED
    assert not result.retry
    assert "nothing to report" in result.error
    assert not out.exists()
