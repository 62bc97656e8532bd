"""Callbacks and lists that a team cannot be built with are refused, with what to write instead."""

import pytest

from replan import ConfigurationError, Host, MultiAgentCallback, Specialist, Team
from replan.testing import ScriptedModel


class Own:
    def on_task_complete(self, info):
        """Hear of the end."""


class Misspelt(Own):
    def on_plan_create(self, info):
        """Never called."""


def config(**fields):
    worker = Specialist(name="a", intended_use="Works.", run=lambda context: "done")
    host = Host(model=ScriptedModel({}))
    return Team(**{"host": host, "specialists": [worker], **fields})


def works(**fields):
    return Specialist(**{"name": "a", "intended_use": "Works.", "run": lambda _: "x", **fields})


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"callbacks": ["nonsense"]}, "callbacks[0]", ["none of the hooks", "on_plan_created"]),
        ({"callbacks": [lambda event: None]}, "callbacks[0]", ["none of the hooks", "on_event"]),
        ({"callbacks": [object()]}, "callbacks[0]", ["none of the hooks"]),
        ({"callbacks": [Own]}, "callbacks[0]", ["a class", "Own()"]),
        (
            {"callbacks": [Own(), Misspelt()]},
            "callbacks[1].on_plan_create",
            ["on_plan_created?"],
        ),
        ({"callbacks": Own()}, "callbacks", ["not a list", "callbacks=[...]"]),
        ({"hook_timeout": 0}, "hook_timeout", ["more than 0"]),
        ({"hook_timeout": "soon"}, "hook_timeout", ["a number", "soon"]),
        ({"stream_tool_call_checker": "yes"}, "stream_tool_call_checker", ["a function"]),
        ({"specialists": works()}, "specialists", ["not a list", "specialists=[...]"]),
        ({"specialists": ["clerk"]}, "specialists[0]", ["clerk", "Specialist(...)"]),
        (
            {"specialists": [works(capabilities="searching")]},
            "specialists[0].capabilities",
            ["not a list", "capabilities=[...]"],
        ),
        (
            {"specialists": [works(intended_use=None)]},
            "specialists[0].intended_use",
            ["must be text"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_team_cannot_be_built_with_is_refused(fields, field, words):
    with pytest.raises(ConfigurationError) as caught:
        config(**fields)
    assert caught.value.field == field
    for word in words:
        assert word in str(caught.value)


def test_an_object_with_one_hook_and_a_base_that_is_not_overridden_are_callbacks():
    config(callbacks=[Own(), MultiAgentCallback()])
