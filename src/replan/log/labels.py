"""The labels by which a run is found: its owner, and what it belongs to."""

import re
from collections.abc import Mapping
from typing import cast

from replan.base.errors import InputError
from replan.base.secrets.masking import KNOWN

TEAM, VERSION, QUEUE, PRIORITY = "team", "version", "queue", "priority"
"""What a server or a worker does a run with: its team, of workers the version of the team."""

TENANT, TOKEN, USER, SESSION = "tenant", "token", "user", "session"
"""Whose a run is: of a tenant, begun with a token by a person, in a session."""

OWN_LABELS = (TEAM, TENANT, TOKEN, USER, SESSION, VERSION, QUEUE)
"""The labels that the server sets on its runs."""

MOST = 20  # labels of one run
LONGEST = 200  # characters of the value of a label

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def checked_labels(labels: Mapping[str, str] | None) -> dict[str, str]:
    checked = dict(labels or {})
    if len(checked) > MOST:
        raise InputError(f"There are {len(checked)} labels. A run can have at most {MOST}.")
    for name, value in cast("dict[object, object]", checked).items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(
                f"{str(name)[:LONGEST]!r} cannot be the name of a label. Begin with a letter or a "
                "digit, then use up to 63 letters, digits, '_', '.' and '-'."
            )
        if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
            raise InputError(
                f"The label '{name}' has a value that cannot be kept. Give a text of one line, "
                f"{LONGEST} characters at most."
            )
        if KNOWN.occur_in(value):
            raise InputError(
                f"The label '{name}' holds a secret value of this process, and labels are kept as "
                "they are. Give another one."
            )
    return checked
