"""The schema for editors says what the reader says."""

import pytest
import yaml
from jsonschema import Draft202012Validator

from replan.team.file_team import team_schema

GOOD = [
    "{}",
    "name: x\nround_scope: ready\ncomplexity_threshold: 0\n",
    "limits: {max_rounds: 3, step_timeout: 0.5}\n",
    "models: {a: {model: 'openai:x', api_key_env: KEY_A, temperature: 0}}\n",
    "plan_template: {file: a.md}\n",
    "specialists: [{use: 'replan_local:writer'}, {name: a, intended_use: A., run: 'json:dumps'}]\n",
    "specialists: [{name: a, intended_use: A., chat_model: offline, tools: ['json:dumps']}]\n",
    "host: {model: offline, tools: [{type: web_search}]}\n",
    "limits: {max_tokens: 5, max_cost: 0.5, max_seconds: 9, per_step: {max_cost: 1}}\n",
    "prices: {offline: {input: 0, output: 0.5}}\n",
    "specialists: [{use: 'replan_local:writer', limits: {max_seconds: 0.5, max_model_calls: 3}}]\n",
    "knowledge: .",
    "knowledge: {folder: ., embeddings: 'openai:x'}",
]
BAD = [
    "naem: x\n",
    "name: 3\n",
    "name: ''\n",
    "round_scope: all\n",
    "complexity_threshold: 2\n",
    "limits: {max_rounds: 0}\n",
    "limits: {max_rnds: 1}\n",
    "limits: {max_cost: 0}\n",
    "limits: {per_step: {max_rounds: 1}}\n",
    "prices: {offline: {input: 1}}\n",
    "prices: {offline: {input: 1, output: -1}}\n",
    "prices: {offline: 3}\n",
    "specialists: [{use: 'replan_local:writer', limits: {max_steps: 1}}]\n",
    "host: {}\n",
    "host: {model: 3}\n",
    "models: {a: {}}\n",
    "models: {a: {model: x, api_key: k}}\n",
    "models: {a: {model: x, api_key_env: sk-123}}\n",
    "models: {a: {model: x, base_url: server}}\n",
    "plan_template: {path: a.md}\n",
    "specialists: []\n",
    "specialists: [{name: a, intended_use: A.}]\n",
    "specialists: [{name: a, chat_model: offline}]\n",
    "specialists: [{use: 'replan_local:writer', run: 'json:dumps'}]\n",
    "specialists: [{name: a, intended_use: A., run: dumps}]\n",
    "knowledge: {embeddings: 'openai:x'}",
    "knowledge: {folder: ., embedding: 'openai:x'}",
    "knowledge: {folder: ., embeddings: 3}",
]
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


def test_the_schema_says_its_dialect_and_title():
    schema = team_schema()

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "Replan team"
