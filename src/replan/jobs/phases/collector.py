"""The values that a command needs, which of them are wrong, and questions for the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pydantic import JsonValue

from replan.jobs.corrections import merge_values
from replan.jobs.extraction.port import Extractor, JobMessage, Wanted
from replan.jobs.job import Job
from replan.jobs.sayings import Language, joined, say
from replan.jobs.spec.job_spec import JobSpec
from replan.jobs.spec.slot import Slot, ValidationIssue, text_in

MISSING = "missing"
"""The code of a required value that is not there."""

REOPENED = "reopened"
"""The code of the remark that a value was removed because another one changed."""


@dataclass(frozen=True)
class InformationCollector:
    """Knows which information the commands of a spec need."""

    spec: JobSpec
    extractor: Extractor  # finds values in messages

    def get_required_info(self, command: str) -> tuple[str, ...]:
        """The slots that a command needs, each after those on which it depends."""
        return self.spec.needs_of(command)

    async def extract_info(
        self, messages: Sequence[JobMessage], required_info: Sequence[str], today: date
    ) -> Mapping[str, JsonValue]:
        """Find values of slots in the messages of a user."""
        text = "\n".join(message.content for message in messages if message.role == "user")
        job = Job(id="-", type=self.spec.name)
        wanted = Wanted(spec=self.spec, job=job, said=text, messages=messages, today=today)
        found = (await self.extractor.extract(wanted)).values
        return {name: found[name] for name in required_info if name in found}

    def validate_info(
        self, info: Mapping[str, object], requirements: Sequence[str], language: Language = "en"
    ) -> tuple[ValidationIssue, ...]:
        """The problems of collected information: wrong values, and missing required slots."""
        known = [name for name in (*requirements, *info) if self.spec.knows(name)]
        merge = merge_values(self.spec, tuple(dict.fromkeys(known)), {}, info, language)
        wrong = {issue.field for issue in merge.issues}
        return (
            *merge.issues,
            *(
                self.spec.slot(name).issue_of("empty", "", language).replace(code=MISSING)
                for name in requirements
                if name not in merge.values and name not in wrong
            ),
        )

    def generate_collection_prompt(
        self,
        missing_info: Sequence[str],
        language: Language = "en",
        issues: Sequence[ValidationIssue] = (),
    ) -> str:
        """Ask for what is missing: what was wrong first, then a question, then what else is needed.

        Args:
            missing_info: The slots, the one first that is asked for.
            language: The language.
            issues: What is wrong with values that were given.
        """
        lines = [self._issue_text(issue, language) for issue in issues]
        if missing_info:
            lines.append(self._question(self.spec.slot(missing_info[0]), language))
        if others := [self.spec.slot(name).called(language) for name in missing_info[1:]]:
            lines.append(say("also", language, names=joined(others, language)))
        return "\n".join(lines)

    def _issue_text(self, issue: ValidationIssue, language: Language) -> str:
        if issue.code == REOPENED:
            return issue.message
        slot = self.spec.slot(issue.field)
        # The issue of a secret slot does not have its value.
        key = "wrong" if issue.value else "wrong_secret"
        called = slot.called(language)
        return say(key, language, value=issue.value, name=called, problem=issue.message)

    def _question(self, slot: Slot, language: Language) -> str:
        question = text_in(slot.question, language) or slot.called(language)
        if not slot.choices:
            return question
        choices = joined((slot.worded(choice, language) for choice in slot.choices), language)
        return f"{question} {say('choices', language, choices=choices)}"
