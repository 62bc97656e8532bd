"""How a benchmark's rows are printed."""

import json

import pytest

ROWS = [
    {"table": "One", "seed": 1, "ratio": 1.234},
    {"table": "One", "seed": "median", "ratio": None},
    {"table": "Two", "bytes": 12345, "share": 12.34},
]


@pytest.fixture
def publish(script):
    reporting = script("reporting")

    def run(*words):
        args = reporting.options("").parse_args(words)
        reporting.publish("name", args, lambda _: ROWS)

    return run


def test_rows_become_one_markdown_table_for_each_name(publish, capsys):
    publish("--long")
    assert capsys.readouterr().out == (
        "## name\n\nlong: True\n"
        "\n### One\n\n| seed | ratio |\n| ---: | ---: |\n| 1 | 1.23 |\n| median |  |\n"
        "\n### Two\n\n| bytes | share |\n| ---: | ---: |\n| 12,345 | 12.3 |\n"
    )


def test_json_is_one_line_with_the_options_and_all_rows(publish, capsys):
    publish("--json")
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {"benchmark": "name", "options": {"long": False}, "rows": ROWS}
