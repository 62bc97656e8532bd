"""What one generated reply is made from: a language, a plan, a team, and the number of its wording.

A family is a function from such a drawing to a text and what it means. What it means comes from the
drawn plan, never from a reader.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Literal, TypeVar

from reply_families.words import LANGUAGES, Language

Reader = Literal["think", "feedback", "plan", "answer", "specialist", "usage"]
"""Who reads a reply: a node of the host, the planner's or the answer's reader, a specialist's."""

Outcome = Literal["plan", "answer", "complete", "continue", "success", "failed", "partial", "usage"]

T = TypeVar("T")

WORDINGS = 10
TEAMS = (
    ("researcher", "coder", "analyst", "writer", "reviewer"),
    ("data_analyst", "web_search", "report_writer", "fact_checker"),
    ("sql-expert", "translator", "editor", "qa"),
)
_FEWEST, _MOST = 3, 5


@dataclass(frozen=True)
class Task:
    """One step of a meant plan; `after` holds the places of others, counted from 1."""

    text: str
    who: str
    after: tuple[int, ...] = ()
    brief: str = ""


@dataclass(frozen=True)
class Meant:
    """What a reply means.

    Attributes:
        outcome: How it is to be taken; none: nobody can know, so the model must be asked.
        tasks: The plan, if it is one.
        text: The answer or result, if it is one.
        ask_is_right: Whether asking is as right as reading it at once.
    """

    outcome: Outcome | None
    tasks: tuple[Task, ...] = ()
    text: str = ""
    ask_is_right: bool = False


@dataclass(frozen=True)
class Item:
    """One reply of the corpus."""

    family: str
    language: str
    wording: int
    reader: Reader
    team: tuple[str, ...]
    text: str
    meant: Meant

    @property
    def name(self) -> str:
        """What identifies it."""
        return f"{self.family}/{self.language}/{self.wording}"


@dataclass(frozen=True)
class Drawing:
    """The material of one reply."""

    family: str
    language: str
    index: int
    random: Random
    tasks: tuple[Task, ...]
    team: tuple[str, ...]

    @property
    def own(self) -> Language:
        """The words of the language."""
        return LANGUAGES[self.language]

    @cached_property
    def words(self) -> Language:
        """The words for labels and keys: in every second wording English, as the prompt asks."""
        return self.own if self.index % 2 else LANGUAGES["en"]

    def pick(self, *variants: T) -> T:
        """The variant of this wording."""
        return variants[self.index % len(variants)]

    def say(self, variants: tuple[str, ...]) -> str:
        """One of some texts, drawn."""
        return variants[self.random.randrange(len(variants))]

    def ids(self, task: Task, label: Callable[[int], str] = str) -> str:
        """The steps that a task waits for, as a list."""
        return ", ".join(map(label, task.after))

    def after(self, task: Task, label: Callable[[int], str] = str) -> str:
        """The attribute in its usual form, or nothing."""
        return f" (after {self.ids(task, label)})" if task.after else ""

    def line(self, number: int, task: Task) -> str:
        """The line of a step as the prompt asks for it."""
        return f"- [ ] {number}. {task.text} @{task.who}{self.after(task)}"

    def listed(self, form: Callable[[int, Task], str] | None = None, between: str = "\n") -> str:
        """All steps in a form."""
        form = form or self.line
        return between.join(form(at, task) for at, task in enumerate(self.tasks, 1))

    def titled(self, body: str) -> str:
        """A body under a title, or without."""
        return body if self.index % 3 == 2 else f"# {self.say(self.own.titles)}\n\n{body}"

    def chained(self) -> "Drawing":
        """The same with steps that each wait for the one before."""
        chain = tuple(
            replace(task, after=(at,) if at else ()) for at, task in enumerate(self.tasks)
        )
        return replace(self, tasks=chain)

    def head(self, key: str = "complexity", value: str = "complex") -> str:
        """A front matter."""
        reason = self.say(self.own.reasons)
        name = "reasoning" if key == "complexity" else "feedback"
        return f"---\n{key}: {value}\n{name}: {reason}\n---\n"

    def item(self, reader: Reader, text: str, meant: Meant) -> Item:
        """The finished reply."""
        return Item(self.family, self.language, self.index, reader, self.team, text, meant)

    def plan(self, text: str) -> Item:
        """A whole think reply that means the drawn plan."""
        return self.item("think", text, Meant("plan", self.tasks))

    def body(self, body: str) -> Item:
        """The plan as the body of one of the replies that can carry one."""
        meant = Meant("plan", self.tasks)
        body = self.titled(body)
        match self.index:
            case 6:
                return self.item("plan", body, meant)
            case 7:
                return self.item("feedback", self.head("verdict", "continue") + body, meant)
            case 8:
                text = f"{self.head()}\n{self.say(self.own.talk)}\n\n{body}"
                return self.item("think", text, meant)
            case 9:
                text = f"{self.head()}{body}\n\n{self.say(self.own.closing)}"
                return self.item("think", text, meant)
            case _:
                return self.item(
                    "think", self.head(value=self.pick("complex", "moderate")) + body, meant
                )


def drawn(family: str, language: str, index: int, seed: int) -> Drawing:
    """Draw the material of one reply; the same for the same arguments."""
    random = Random(f"{seed}/{family}/{language}/{index}")  # noqa: S311 - no secret is drawn
    team = TEAMS[index % len(TEAMS)]
    own = LANGUAGES[language]
    texts = random.sample(own.tasks, random.randint(_FEWEST, _MOST))
    tasks = tuple(
        Task(text, random.choice(team), _waits(random, at, len(texts)))
        for at, text in enumerate(texts)
    )
    return Drawing(family, language, index, random, tasks, team)


def _waits(random: Random, at: int, count: int) -> tuple[int, ...]:
    """The second step waits for nobody, the last for two, so that order and width both matter."""
    if at < 2:
        return ()
    if at == count - 1:
        return tuple(sorted(random.sample(range(1, at + 1), 2)))
    return tuple(sorted(random.sample(range(1, at + 1), random.randint(0, 2))))


Family = Callable[[Drawing], Item]
FAMILIES: dict[str, Family] = {}
"""All families by name."""


def family(make: Family) -> Family:
    """Register a family under the name of its function."""
    FAMILIES[make.__name__] = make
    return make


def lines(name: str, *forms: Callable[[Drawing, int, Task], str], between: str = "\n") -> None:
    """Register a family whose plan is a list in one of some forms of a line."""

    def make(drawing: Drawing) -> Item:
        form = drawing.pick(*forms)
        return drawing.body(drawing.listed(lambda at, task: form(drawing, at, task), between))

    FAMILIES[name] = make
