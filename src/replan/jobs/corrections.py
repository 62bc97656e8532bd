"""Apply values to a job: they fill or correct slots, and reopen what depends on these."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from replan.base.secrets.masking import MASK
from replan.base.values import same
from replan.jobs.sayings import Language
from replan.jobs.spec.job_spec import JobSpec
from replan.jobs.spec.slot import ValidationIssue
from replan.jobs.views import hidden, secrets_in

NOTHING: tuple[object, ...] = (None, "", [], {})
"""Values that count as empty."""


def merge_values(
    spec: JobSpec,
    names: Sequence[str],
    held: Mapping[str, JsonValue],
    new_values: Mapping[str, object],
    language: Language,
) -> "Merge":
    """Merge given values into the stored ones.

    A value that is changed takes back those that depend on it, through others too, unless they are
    given in the same breath; nothing else is taken back. A wrong value is left out, and the value
    that it was to replace goes, too, since the user has withdrawn it.
    """
    merging = Merge(spec, held, new_values, language)
    ordered = spec.in_order(names)
    for name in ordered:
        if _is_value(spec, name, new_values.get(name)):
            merging.take(name, new_values[name])
    for name in ordered:
        merging.check_again(name)
    return merging


def _is_value(spec: JobSpec, name: str, value: object) -> bool:
    """Whether a value is not empty, and not the mask that a model saw in place of a secret."""
    is_mask = isinstance(value, str) and value.strip() == MASK and spec.slot(name).secret
    return value not in NOTHING and not is_mask


class Merge:
    """Given values that are merged into the stored ones; `values` are those after it."""

    def __init__(
        self,
        spec: JobSpec,
        held: Mapping[str, JsonValue],
        new_values: Mapping[str, object],
        language: Language,
    ) -> None:
        self.values = dict(held)
        self._spec = spec
        self._secrets = secrets_in(spec, held, new_values)
        self._held = held
        self._language: Language = language
        self._fresh: set[str] = set()
        self._issues: dict[str, ValidationIssue] = {}
        self._changed: dict[str, None] = {}
        self._reopened: dict[str, None] = {}

    @property
    def issues(self) -> tuple[ValidationIssue, ...]:
        """What is wrong with the values that were left out or taken back."""
        return tuple(map(self._without_secrets, self._issues.values()))

    @property
    def changed(self) -> tuple[str, ...]:
        """The slots whose value was changed or taken back for what it is itself."""
        return tuple(self._changed)

    @property
    def reopened(self) -> tuple[str, ...]:
        """The slots that were taken back because one on which they depend has changed."""
        return tuple(name for name in self._reopened if name not in self.values)

    def _without_secrets(self, issue: ValidationIssue) -> ValidationIssue:
        """An issue that repeats nothing of a secret slot, nor what has the form of one."""
        value = self._spec.without_forms(hidden(issue.value, self._secrets))
        return issue.replace(value=value, message=hidden(issue.message, self._secrets))

    def take(self, name: str, raw: object) -> None:
        value = self._valid(name, raw)
        if value is None:
            return
        self._fresh.add(name)
        if name in self.values and same(self.values[name], value):
            return
        if name in self._held and name not in self._reopened:
            self._changed[name] = None
            self._reopen(name)
        self.values[name] = value

    def check_again(self, name: str) -> None:
        """Check a value again whose check may need a value that came only now."""
        if name in self.values and (value := self._valid(name, self.values[name])) is not None:
            self.values[name] = value

    def _valid(self, name: str, raw: object) -> JsonValue:
        """A value in the form of its slot; None if it is refused."""
        slot = self._spec.slot(name)
        try:
            value = slot.normal(raw)
        except ValueError as error:
            issue = slot.issue_of(str(error), raw, self._language)
        else:
            issue = slot.issue(value, self.values, self._language)
            if issue is None:
                return value
        self._issues[name] = issue
        if name in self.values:
            del self.values[name]
            self._changed[name] = None
            self._reopen(name)
        return None

    def _reopen(self, name: str) -> None:
        behind = self._spec.dependents_of(name)
        # In the order of the spec, so that each process tells them in the same one.
        for slot_name in (slot.name for slot in self._spec.slots if slot.name in behind):
            if slot_name in self.values and slot_name not in self._fresh:
                del self.values[slot_name]
                self._reopened[slot_name] = None
