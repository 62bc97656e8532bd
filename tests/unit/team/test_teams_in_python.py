"""A team in Python: short to write, and all that is wrong with it is told at once."""

from typing import ClassVar

import pytest

from replan import ConfigurationError, Host, Specialist, Team, build_graph, run_sync
from replan.errors import TeamError
from replan.specialists.function import FunctionSpecialist
from replan.team.kinds.member import Member

PLAN = "- [ ] 1. Go @clerk\n"


def work(context):
    return "done"


def test_a_model_and_specialists_are_a_team():
    team = Team("offline", [Specialist("clerk", "Files.", run=work)])

    assert team.host == Host(model="offline") == Host("offline")
    assert run_sync(build_graph(team), {"plan": PLAN}).state["outcome"] == "completed"


def test_more_without_a_name_than_there_is_place_for_is_an_error():
    with pytest.raises(TypeError, match="at most 2 without a name: host, specialists"):
        Team("offline", [], "name")


def test_all_mistakes_of_a_team_and_its_parts_are_told_at_once():
    with pytest.raises(TeamError) as caught:
        Team(
            Host(3, feedbak_model="offline"),
            [
                Specialist("a b", " ", run=work, chat_model="offline"),
                Specialist("clerk", "Files.", run=work, system_prompt="Hi."),
                Specialist("Clerk", "Files.", invokable="work"),
            ],
            round_scope="all",
            limits={"max_runds": 1},
        )

    told = {each.field: each for each in caught.value.mistakes}
    assert set(told) == {
        "host.model",
        "host.feedbak_model",
        "specialists[0].name",
        "specialists[0].intended_use",
        "specialists[0].run",
        "specialists[1].system_prompt",
        "specialists[2].name",
        "specialists[2].invokable",
        "round_scope",
        "limits.max_runds",
    }
    assert told["limits.max_runds"].fix == "Did you mean max_rounds?"
    assert told["host.feedbak_model"].fix == "Did you mean feedback_model?"
    assert told["round_scope"].value == "'all'"
    lines = str(caught.value).splitlines()
    assert lines[0] == "10 mistakes in the team:"
    assert all(str(each) in str(caught.value) and each.fix for each in told.values())


def test_a_mistake_says_whose_model_it_is():
    clerk = Specialist("clerk", "Files.", chat_model="opnai:x")
    other = Specialist("other", "Files.", chat_model="offline", tools=[work, work])

    with pytest.raises(TeamError) as caught:
        build_graph(Team(Host("offline", planning_model="gpt"), [clerk, other]))

    assert [each.field for each in caught.value.mistakes] == [
        "host.planning_model",
        "specialists[0].chat_model",
        "specialists[1].tools[0]",
    ]


def test_a_key_in_a_team_is_not_repeated():
    key = "sk-proj-aB3dE5gH7jK9mN1pQ3sT5"

    with pytest.raises(ConfigurationError) as caught:
        Team(Host("offline", api_key=key), [Specialist(key, "A.", run=work, tools=key)])

    assert key not in str(caught.value)


class Echo(Member):
    """A specialist that says its step.

    Attributes:
        echo: What it says before it.
    """

    marks: ClassVar[tuple[str, ...]] = ("echo",)

    echo: str | None = None

    def built(self, place, chats):
        def say(context):
            return f"{self.echo} {context.task_description}"

        return FunctionSpecialist(self.card_with("pure"), say)


class Wider(Specialist, Echo):
    """The kinds that there are, and one more."""


def test_a_new_kind_is_one_class_and_one_member():
    team = Team("offline", [Wider("clerk", "Says.", echo="Hear:")])
    state = run_sync(build_graph(team), {"plan": PLAN}).state

    assert state["current_specialist_results"]["1/clerk"].text == "Hear: Go"


def test_the_rules_hold_for_a_new_kind_without_a_word():
    with pytest.raises(TeamError) as caught:
        Team(
            "offline",
            [
                Wider("a", "A.", echo="x", run=work),
                Wider("b", "B.", echo="x", tools=[work]),
                Wider("c", "C."),
            ],
        )

    assert [each.field for each in caught.value.mistakes] == [
        "specialists[0].echo",
        "specialists[1].tools",
        "specialists[2]",
    ]
    assert "with echo does not use this" in str(caught.value)
    assert caught.value.mistakes[2].fix.endswith("use, echo.")
