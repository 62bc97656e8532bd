"""The state's channels: what they refuse, what they make of dicts, and how they are replayed."""

from langgraph.channels import LastValue

from replan import Usage
from replan.state.channels import Checked

NEVER_WRITTEN = LastValue(object).value


def fresh(channel, key="work"):
    channel.key = key
    return channel.from_checkpoint(NEVER_WRITTEN)


def test_a_checked_key_makes_a_value_of_a_plain_dict():
    channel = fresh(Checked(Usage))
    channel.update([{"calls": 2}])
    assert channel.get() == Usage(calls=2)
