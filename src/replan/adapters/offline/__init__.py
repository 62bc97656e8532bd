"""A chat model without a model behind it, for a first look without a key."""

from replan.adapters.offline.model import OfflineModel
from replan.adapters.offline.reply import OFFLINE_NOTICE

__all__ = ["OFFLINE_NOTICE", "OfflineModel"]
