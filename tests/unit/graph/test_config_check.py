"""A configuration that no graph can be built from is refused, with the field and the fix."""

import pytest
from pydantic import ValidationError

from replan import (
    ConfigurationError,
    Host,
    Limits,
    MemoryOptions,
    RAGOptions,
    Specialist,
    Team,
    build_graph,
)
from replan.testing import ScriptedModel


def work(context):
    return "done"


def specialist(**fields):
    return Specialist(**{"name": "a", "intended_use": "Works.", "run": work, **fields})


def config(*team, **options):
    return Team(host=Host(model=ScriptedModel({})), specialists=list(team), **options)


WRONG = {
    "nobody": ([], "specialists", "this is empty", "Give at least one"),
    "a blank": ([specialist(name="a b")], "specialists[0].name", "'a b'", "Use letters, digits"),
    "no name": ([specialist(name="")], "specialists[0].name", "''", "Use letters, digits"),
    "an at": ([specialist(name="@a")], "specialists[0].name", "'@a'", "beginning with a letter"),
    "a newline": ([specialist(name="a\n")], "specialists[0].name", r"'a\n'", "Use letters"),
    "a node's mark": ([specialist(name="a:b")], "specialists[0].name", "'a:b'", "Use letters"),
    "twins": (
        [specialist(), specialist(name="b"), specialist(name="A")],
        "specialists[2].name",
        "specialists[0] already has this name (got 'A')",
        "Give each specialist its own name",
    ),
    "no use": (
        [specialist(), specialist(name="b", intended_use=" \n")],
        "specialists[1].intended_use",
        "this is empty",
        "the planner reads this",
    ),
    "no way": ([specialist(run=None)], "specialists[0]", "no way to work", "Give exactly one of"),
    "two ways": (
        [specialist(invokable=work)],
        "specialists[0].run",
        "it already has invokable as its way to work",
        "Give exactly one of",
    ),
    "a model too": (
        [specialist(run=None, chat_model="offline", streamable=work)],
        "specialists[0].streamable",
        "it already has chat_model as its way to work",
        "Give exactly one of",
    ),
}


@pytest.mark.parametrize(("team", "field", "problem", "fix"), WRONG.values(), ids=WRONG)
def test_a_wrong_team_is_refused_by_field_value_and_mend(team, field, problem, fix):
    with pytest.raises(ConfigurationError) as caught:
        config(*team)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")
    assert problem in str(caught.value)
    assert fix in caught.value.fix


@pytest.mark.parametrize("name", ["a", "Tax-Law", "step_2", "3d", "研究员", "größe"])
def test_a_name_may_be_of_any_script(name):
    config(specialist(name=name))


def test_something_that_runs_whole_and_streams_is_one_way_to_work():
    config(specialist(run=None, invokable=work, streamable=work))


def test_a_host_without_a_model_is_refused():
    with pytest.raises(ConfigurationError, match=r"host\.model: this is missing"):
        Team(Host(), [specialist()])


@pytest.mark.parametrize(
    "wrong", [{"complexity_threshold": 2}, {"round_scope": "all"}, {"on_failure": "panic"}], ids=str
)
def test_a_setting_that_makes_no_sense_is_refused_when_the_graph_is_built(wrong):
    with pytest.raises((ConfigurationError, ValidationError), match=next(iter(wrong))):
        build_graph(config(specialist(), **wrong))


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("host.model", Host(model=None)),
        ("host.model", Host(model=42)),
        ("calls", "Merged"),
        ("round_scope", "all"),
        ("limits", 3),
        ("specialists[0].name", [specialist(name=None)]),
        ("specialists[0].run", [specialist(run="work")]),
        ("specialists[0].invokable", [specialist(run=None, invokable="work")]),
    ],
    ids=range(8),
)
def test_every_field_that_cannot_be_used_is_named(field, wrong):
    fields = {"host": Host(model=ScriptedModel({})), "specialists": [specialist()]}
    name = field.partition(".")[0].partition("[")[0]
    with pytest.raises(ConfigurationError) as caught:
        Team(**{**fields, name: wrong})
    assert caught.value.field == field


def test_a_setting_that_makes_no_sense_sends_its_reader_to_where_it_stands():
    with pytest.raises(ConfigurationError, match="Write 'plan', 'ready' or 'step'"):
        config(specialist(), round_scope="all")


def test_the_settings_of_a_run_are_those_of_the_configuration():
    limits = Limits(max_rounds=2)
    settings = config(
        specialist(),
        limits=limits,
        round_scope="step",
        on_failure="halt",
        complexity_threshold=0.7,
        allow_dynamic_update=False,
        approval="always",
    ).settings
    assert dict(settings) == {
        "memory": MemoryOptions(),
        "rag": RAGOptions(),
        "tenant": "",
        "user": "",
        "limits": limits,
        "round_scope": "step",
        "on_failure": "halt",
        "complexity_threshold": 0.7,
        "allow_dynamic_update": False,
        "keep_prompts": True,
        "approval": "always",
        "on_doubt": "ask",
    }
