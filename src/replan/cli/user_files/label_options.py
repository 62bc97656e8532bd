"""Labels as a command line names them."""

from collections.abc import Sequence

from replan.base.errors import InputError
from replan.log.labels import checked_labels


def read_labels(options: Sequence[str]) -> dict[str, str]:
    """Read labels, each `NAME=VALUE`."""
    labels = dict[str, str]()
    for text in options:
        name, sign, value = text.partition("=")
        if not sign:
            raise InputError(f"--label {text} has no value. Write NAME=VALUE, such as user=eva.")
        if labels.setdefault(name.strip(), value.strip()) != value.strip():
            raise InputError(f"--label {name.strip()} is given twice. Give it one value.")
    return checked_labels(labels)
