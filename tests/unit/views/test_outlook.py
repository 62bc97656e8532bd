"""What is told of a plan that is ahead, beyond what the terminal shows of a team file."""

import pytest

from replan import Host, Limits, Price, Specialist, Team
from replan.cli.shared.worst_case import dearest_token
from replan.plan import PlanDocument
from replan.testing import ScriptedModel
from replan.views.ahead.outlook import outlook, outlook_lines
from replan.views.ahead.preview import KnownTeam

PLAN = """\
- [x] 1. Draft @writer
- [ ] 2. Send @Writer (after 1)
- [ ] 3. File @clerk
- [ ] 4. Do what is left @guard
"""


def worst(limits=None, **options):
    plan, team = PlanDocument.parse(PLAN).plan, KnownTeam(limits=limits or Limits(), **options)
    return outlook(plan, team)["worst_case"]["cost"]


def test_the_cost_at_worst_is_that_of_the_dearest_tokens_or_the_limit():
    assert worst() is None
    assert worst(Limits(max_cost=3)) == 3
    assert worst(Limits(max_tokens=1000), dearest_token=0.002) == 2
    assert worst(Limits(max_tokens=1000, max_cost=3), dearest_token=0.002) == 2
    assert worst(dearest_token=0.0) == 0
    plan, team = PlanDocument.parse(PLAN).plan, KnownTeam(limits=Limits(max_cost=0.25))
    assert "cost: at most 0.25" in outlook_lines(plan, team)


def specialist(**way):
    return Specialist(name="a", intended_use="Works.", **way)


PRICES = {"gpt": Price(input=1, output=8), "openai:big": Price(input=20, output=2)}


@pytest.mark.parametrize(
    ("host", "member", "expected"),
    [
        ("offline", {"chat_model": "offline"}, 0.0),
        ("openai:gpt", {"chat_model": "offline"}, 8e-6),
        ("openai:gpt", {"chat_model": "openai:big"}, 20e-6),
        ("openai:other", {"chat_model": "openai:big"}, None),
        ("openai:gpt", {"chat_model": "openai:other"}, None),
        ("openai:gpt", {"chat_model": ScriptedModel({})}, None),
        ("offline", {"run": len}, None),
        ("offline", {"invokable": len}, None),
    ],
)
def test_the_dearest_token_is_known_where_every_model_has_a_price(host, member, expected):
    config = Team(host=Host(model=host), specialists=[specialist(**member)], prices=PRICES)
    assert dearest_token(config) == expected


def ahead(text=PLAN, **options):
    plan, team = PlanDocument.parse(text).plan, KnownTeam(limits=Limits(), **options)
    told = [line for line in outlook_lines(plan, team) if line.startswith("approval")]
    return outlook(plan, team)["approvals"], told


def test_tools_that_need_approval_are_told_with_the_steps_that_may_use_them():
    asked, told = ahead(asking={"writer": ("send", "post"), "clerk": (), "guard": ("open",)})
    assert asked["tools"] == [
        {"specialist": "writer", "tools": ["send", "post"], "steps": [2]},
        {"specialist": "guard", "tools": ["open"], "steps": [4]},
    ]
    assert told == [
        "approval: @writer asks before each call of send, post (step 2)",
        "approval: @guard asks before each call of open (step 4)",
    ]
    assert ahead("- [x] 1. Draft @writer\n", asking={"writer": ("send",)})[1] == []
