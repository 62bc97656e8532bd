"""The schema for editors says what the reader says."""

import pytest
import yaml
from jsonschema import Draft202012Validator

from cases import cases_of
from replan.team.file_team import team_schema

CASES = cases_of(__file__)

GOOD = CASES["taken"]
BAD = CASES["refused"]
BASE = {
    "host": {"model": "offline"},
    "specialists": [{"name": "x", "intended_use": "X.", "chat_model": "offline"}],
}


@pytest.fixture(scope="module")
def validator():
    Draft202012Validator.check_schema(team_schema())
    return Draft202012Validator(team_schema())


def team_with(text):
    return {**BASE, **yaml.safe_load(text)}


@pytest.mark.parametrize("text", GOOD)
def test_what_the_reader_takes_the_schema_takes(validator, read, write, text):
    write("Plan.", "a.md")

    read(yaml.safe_dump(team_with(text)))
    assert list(validator.iter_errors(team_with(text))) == []


@pytest.mark.parametrize("text", BAD)
def test_what_the_reader_refuses_the_schema_refuses(validator, mistakes, text):
    assert mistakes(yaml.safe_dump(team_with(text)))
    assert list(validator.iter_errors(team_with(text)))


def test_every_field_is_explained_and_no_section_takes_other_fields():
    schema = team_schema()
    for section in (schema, *schema["$defs"].values()):
        assert section["description"]
        assert "\n" not in section["description"]
        assert section["additionalProperties"] is False
        for name, field in section["properties"].items():
            assert len(field["description"]) > 10, name
            assert field.get("default", "") is not None, name
