"""The wording of a job's questions: from its spec, or from a model."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from langchain_core.runnables import RunnableConfig

from replan.failures import describe, is_fatal_for_run
from replan.jobs.extraction.by_model import reply_text
from replan.jobs.job import COMMAND, Job
from replan.jobs.sayings import Language
from replan.jobs.spec.job_spec import JobSpec
from replan.models.chat import Chat
from replan.ports.run_context import here
from replan.prompts.sections import Call, data_message, section, system_message
from replan.prompts.templates import load, render

_LANGUAGES: dict[Language, str] = {"en": "English", "zh": "Chinese"}
_LONGER = 500


class Phraser(Protocol):
    """Puts a question in other words."""

    async def phrase(self, text: str, keeps: Sequence[str], language: Language) -> str:
        """Return a question in other words; the texts that it keeps are in it as they are."""
        ...


@dataclass(frozen=True)
class ModelPhraser:
    """Lets a chat model reword questions in one call; an unusable wording is not used."""

    chat: Chat
    config: RunnableConfig = field(default_factory=RunnableConfig)  # of the calls

    async def phrase(self, text: str, keeps: Sequence[str], language: Language) -> str:
        """Ask the model once; where its words lose something, the question stays as it is."""
        instructions = render(
            load("phrase"), language=_LANGUAGES[language], keeps="; ".join(keeps) or "-"
        )
        prompt = [
            system_message(Call(node="phrase"), instructions),
            data_message(section("request", text)),
        ]
        try:
            phrased = reply_text((await self.chat.reply(prompt, self.config)).text)
        except Exception as error:
            if is_fatal_for_run(error):
                raise
            here().warn(f"The question is asked in the words of the job: {describe(error)}")
            return text
        lost = [required for required in keeps if required.casefold() not in phrased.casefold()]
        if not phrased or lost or len(phrased) > 2 * len(text) + _LONGER:
            problem = f"it leaves out {', '.join(lost)}" if lost else "it cannot be used"
            said = "The question is asked in the words of the job"
            here().warn(f"{said}: of the model's, {problem}.")
            return text
        return phrased


def kept_in_question(spec: JobSpec, job: Job) -> list[str] | None:
    """What must be in a question of a job; None if it is asked in the words of the spec."""
    asked = job.asked.names[0] if job.asked.names else ""
    if asked == COMMAND:
        return [command.called(job.language) for command in spec.commands]
    # What lets something happen is confirmed in the words of the engine.
    if not spec.knows(asked):
        return None
    slot = spec.slot(asked)
    return [slot.worded(choice, job.language) for choice in slot.choices or ()]
