"""The YAML of a team file can neither run, hide nor swell."""

import time

import pytest
from hypothesis import given, strategies as st

from replan.base.declared.yaml_source import LARGEST, read_yaml
from replan.errors import TeamFileError
from replan.team.team_file import read_team_file

NINE = ", ".join(["*a{0}"] * 9)


def bomb(level):
    """A mapping of lists that name the list before nine times each."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{NINE.format(n - 1)}]" for n in range(1, level)]
    return "\n".join(lines)


def merging_bomb(level):
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{NINE.format(n - 1)}]}}" for n in range(1, level)]
    return "\n".join(lines)


WRONG = [
    ("", 1, 1, "file is empty"),
    ("# nothing\n", 1, 1, "file is empty"),
    ("- a\n", 1, 1, "must have fields"),
    ("text\n", 1, 1, "must have fields"),
    ("name: a\nhost: [\n", 3, 1, "not YAML"),
    ("name: a\n\thost: b\n", 2, 1, "Indent with spaces"),
    ("name: a\nhost:\n\tmodel: b\n", 3, 1, r"'\t'. Indent with spaces"),
    ("name: a: b\n", 1, 8, "in quotes"),
    ("name: @a\n", 1, 7, "in quotes"),
    ("name: *a\n", 1, 7, "its anchor is not known"),
    ("name: 'a\n", 2, 1, "not YAML"),
    ("name: a\n---\nname: b\n", 2, 1, "second '---'"),
    ("name: a\nhost: \x07\n", 2, 7, "character"),
    (b"name: a\nhost: \xff\n", 2, 1, "UTF-8"),
    ("a: &a [*a]\n", 1, 8, "its anchor is not known"),
    ("a: &a {b: *a}\n", 1, 11, "its anchor is not known"),
    ("[" * 50_000, 1, None, "nested deeper than 20 levels"),
    ("a:\n" + "".join(f"{' ' * n}- \n" for n in range(1, 90)), None, None, "nested deeper"),
    (bomb(30), None, None, "more than 10,000 values"),
    (merging_bomb(30), None, None, "more than 10,000 values"),
    ("<<: 3\n", 1, 5, "only merge mappings"),
    ("name: a\nname: b\n", 2, 1, "already in line 1"),
    ("host: {a: 1, a: 2}\n", 1, 14, "already in line 1"),
    ("host: !!python/object/apply:os.getcwd []\n", 1, 7, "cannot have the tag"),
    ("host: !mine {a: 1}\n", 1, 7, "cannot have the tag"),
    ("name: !!binary aGk=\n", 1, 7, "cannot have the tag"),
    ("name: !!int abc\n", 1, 7, "cannot be read as int"),
    ("name: !!bool abc\n", 1, 7, "cannot be read as bool"),
    ("? [a]\n: b\n", 1, 3, "must be text"),
]


@pytest.mark.parametrize(("text", "line", "column", "words"), WRONG)
def test_what_is_no_team_is_told_with_its_place(write, text, line, column, words):
    started = time.process_time()
    with pytest.raises(TeamFileError) as caught:
        read_team_file(write(text), {})

    (mistake,) = [each for each in caught.value.mistakes if words in str(each)]
    assert line in (None, mistake.line)
    assert column in (None, mistake.column)
    assert time.process_time() - started < 5


def least_seconds(text):
    spent = []
    for _ in range(3):
        started = time.process_time()
        read_yaml(text)
        spent.append(time.process_time() - started)
    return min(spent)


def test_what_is_no_yaml_takes_no_longer_than_what_is():
    team = "members:\n" + "  - name: a\n    limits:\n      max_model_calls: 5\n" * 100
    wrong = "name: a\n" + "{" * (len(team) // 2) + "}" * (len(team) // 2)

    assert read_yaml(wrong).mistakes
    assert not read_yaml(team).mistakes
    assert least_seconds(wrong) < 10 * least_seconds(team)


def test_a_file_that_is_too_large_is_not_read(write):
    with pytest.raises(TeamFileError, match="larger than"):
        read_team_file(write("#" * (LARGEST + 1)), {})


def test_dates_and_overlong_numbers_stay_text():
    source = read_yaml(f"a: 2026-03-02\nb: {'9' * 5_000}\nc: 12\nd: =\n")

    assert source.value == {"a": "2026-03-02", "b": "9" * 5_000, "c": 12, "d": "="}


@given(st.text(alphabet="ab:-[]{}&*!<>|'\"#%@, \n\t~?01", max_size=60))
def test_any_text_is_read_or_told(text):
    source = read_yaml(text)

    assert source.value is None or not isinstance(source.value, tuple)
    for mistake in source.mistakes:
        assert mistake.line >= 1
        assert mistake.column >= 1
        assert mistake.fix
