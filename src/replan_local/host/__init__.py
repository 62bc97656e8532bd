"""A chat model without a model behind it, for a first look without a key."""

from replan_local.host.model import OfflineModel
from replan_local.host.reply import OFFLINE_NOTICE

__all__ = ["OFFLINE_NOTICE", "OfflineModel"]
