"""Replies of the host in the form that is asked for, and the deviations of small open models.

`FAMILIES` has a family for each deviation. A family makes 20 replies, ten in English and ten in
Chinese, each from a meaning that is known: `replies()` yields all of them with what they mean. The
topics of `reply_topics.json` give the meanings.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["plan", "answer", "complete", "revision"]
"""What a reply carries: a first plan, a direct answer, the final answer, a revised plan."""

TEAM = ("researcher", "analyst", "writer")
_KINDS: tuple[Kind, ...] = ("plan", "answer", "complete", "revision")
_PLANS: tuple[Kind, ...] = ("plan", "revision")


@dataclass(frozen=True)
class Task:
    """A step that is meant; `after` holds numbers of others."""

    text: str
    who: str
    after: tuple[int, ...] = ()
    brief: str = ""


@dataclass(frozen=True)
class Topic:
    """What a request is about: its answer, its plan, and why."""

    title: str
    answer: str
    why: str
    tasks: tuple[Task, ...]
    language: str


@dataclass(frozen=True)
class Meant:
    """A reply by its meaning: the keys of its front matter, and what stands below it."""

    kind: Kind
    topic: Topic

    @property
    def label(self) -> str:
        """The value of the key that decides."""
        labels = {"plan": "complex", "answer": "simple", "complete": "complete"}
        return labels.get(self.kind, "continue")

    @property
    def keys(self) -> dict[str, str]:
        """The front matter."""
        if self.kind in ("plan", "answer"):
            return {"complexity": self.label, "reasoning": self.topic.why}
        update = {"update": self.topic.why} if self.kind == "revision" else {}
        return {"verdict": self.label, **update, "feedback": self.topic.why}

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The steps, if the body is a plan."""
        return self.topic.tasks if self.kind in _PLANS else ()

    @property
    def body(self) -> str:
        """The answer or the plan."""
        return self.planned(task_line) if self.tasks else self.topic.answer

    def planned(self, line: Callable[[int, Task], str]) -> str:
        """The plan with its steps in a form."""
        lines = [line(number, task) for number, task in enumerate(self.tasks, 1)]
        return "\n".join([f"# {self.topic.title}", "", *lines])

    def old_plan(self) -> str:
        """The plan that a revision changes: its second step failed, and asked for less."""
        lines = []
        for number, task in enumerate(self.topic.tasks, 1):
            mark = {1: "x", 2: "!"}.get(number, " ")
            text = f"{task.text}?" if number == 2 else task.text
            lines.append(f"- [{mark}] {number}. {text} @{task.who}{after(task)}")
        return "\n".join([f"# {self.topic.title}", "", *lines])


def after(task: Task) -> str:
    """What a step waits for, as its line says it."""
    return f" (after {', '.join(map(str, task.after))})" if task.after else ""


def task_line(number: int, task: Task) -> str:
    """The line of a step as it is asked for, with its brief."""
    brief = f"\n      {task.brief}" if task.brief else ""
    return f"- [ ] {number}. {task.text} @{task.who}{after(task)}{brief}"


def head(keys: dict[str, str]) -> str:
    """The lines of a front matter, without those that enclose it."""
    return "\n".join(f"{key}: {value}" for key, value in keys.items())


def asked_form(meant: Meant) -> str:
    """The reply as it is asked for."""
    return f"---\n{head(meant.keys)}\n---\n{meant.body}\n"


Family = Callable[[Meant, int], str]

FAMILIES: dict[str, tuple[Family, tuple[Kind, ...]]] = {}
"""The deviations by name, each with the kinds of replies in which it occurs."""


def _family(*kinds: Kind) -> Callable[[Family], Family]:
    def register(family: Family) -> Family:
        FAMILIES[family.__name__.strip("_").replace("_", " ")] = (family, kinds or _KINDS)
        return family

    return register


def replies() -> Iterator[tuple[str, Meant, str]]:
    """All replies of all families: the family, what is meant, the text."""
    for name, (family, kinds) in FAMILIES.items():
        for index, topic in enumerate((*ENGLISH, *CHINESE)):
            meant = Meant(kinds[index % len(kinds)], topic)
            yield name, meant, family(meant, index)


@_family()
def _fence_around_it(meant: Meant, index: int) -> str:
    return f"```{('markdown', '', 'md', 'text')[index % 4]}\n{asked_form(meant)}```\n"


@_family()
def _no_dashes(meant: Meant, _index: int) -> str:
    return f"{head(meant.keys)}\n\n{meant.body}\n"


@_family()
def _no_closing_dashes(meant: Meant, _index: int) -> str:
    return f"---\n{head(meant.keys)}\n\n{meant.body}\n"


@_family()
def _dashes_only_below(meant: Meant, _index: int) -> str:
    return f"{head(meant.keys)}\n---\n{meant.body}\n"


@_family()
def _longer_dashes(meant: Meant, index: int) -> str:
    dashes = "-" * (4 + index % 5)
    return f"{dashes}\n{head(meant.keys)}\n{dashes}\n\n{meant.body}\n"


@_family()
def _bold_keys(meant: Meant, index: int) -> str:
    form = "**{}:** {}" if index % 2 else "**{}**: {}"
    lines = "\n".join(form.format(key, value) for key, value in meant.keys.items())
    return f"---\n{lines}\n---\n{meant.body}\n" if index % 4 < 2 else f"{lines}\n\n{meant.body}\n"


@_family()
def _quoted_values(meant: Meant, index: int) -> str:
    form = '"{}": "{}",' if index % 2 else '{}: "{}"'
    lines = "\n".join(form.format(key, value) for key, value in meant.keys.items())
    return f"---\n{lines}\n---\n{meant.body}\n"


@_family()
def _keys_as_bullets(meant: Meant, index: int) -> str:
    lines = "\n".join(f"- {line}" for line in head(meant.keys).split("\n"))
    return f"---\n{lines}\n---\n{meant.body}\n" if index % 2 else f"{lines}\n\n{meant.body}\n"


@_family()
def _json_object(meant: Meant, index: int) -> str:
    name = "plan" if meant.tasks else ("answer", "final_answer", "body")[index % 3]
    return json.dumps({**meant.keys, name: meant.body}, ensure_ascii=False, indent=index % 3)


@_family()
def _json_in_a_fence(meant: Meant, index: int) -> str:
    return f"```json\n{_json_object(meant, index)}\n```\n"


@_family()
def _thoughts_before(meant: Meant, index: int) -> str:
    tag = ("think", "thinking", "thought", "reasoning")[index % 4]
    thoughts = f"The user wants this: {meant.topic.title}.\n\n---\nIs it simple?\n- [ ] maybe"
    return f"<{tag}>\n{thoughts}\n</{tag}>\n\n{asked_form(meant)}"


@_family()
def _thoughts_without_their_beginning(meant: Meant, _index: int) -> str:
    return f"Okay, {meant.topic.why}\nSo that is it.\n</think>\n\n{asked_form(meant)}"


@_family()
def _thoughts_before_a_fence(meant: Meant, index: int) -> str:
    return f"<think>{meant.topic.why}</think>\n{_fence_around_it(meant, index)}"


@_family()
def _capital_letters(meant: Meant, index: int) -> str:
    def written(text: str) -> str:
        return text.upper() if index % 2 else text.capitalize()

    keys = {written(key): value for key, value in meant.keys.items()}
    keys = {key: written(value) if value == meant.label else value for key, value in keys.items()}
    return f"---\n{head(keys)}\n---\n{meant.body}\n"


@_family()
def _chinese_head(meant: Meant, _index: int) -> str:
    words = {"complexity": "复杂度", "reasoning": "理由", "verdict": "结论", "feedback": "反馈"}
    words |= {"update": "更新", "simple": "简单", "complex": "复杂", "complete": "完成"}
    words |= {"continue": "继续"}
    lines = (f"{words[key]}：{words.get(value, value)}" for key, value in meant.keys.items())
    return "---\n" + "\n".join(lines) + f"\n---\n{meant.body}\n"


@_family()
def _more_keys(meant: Meant, index: int) -> str:
    more = {"confidence": "high", "language": meant.topic.language, "Total Steps": "3"}
    keys = {**more, **meant.keys} if index % 2 else {**meant.keys, **more}
    return f"---\n{head(keys)}\n---\n{meant.body}\n"


@_family()
def _label_in_a_sentence_of_its_own_word(meant: Meant, index: int) -> str:
    words = {"simple": "Simple.", "complex": "`complex`", "continue": "continue."}
    words |= {"complete": "completed" if index % 2 else "done"}
    keys = {key: words.get(value, value) for key, value in meant.keys.items()}
    return f"---\n{head(keys)}\n---\n{meant.body}\n"


@_family()
def _end_token(meant: Meant, index: int) -> str:
    return (
        asked_form(meant).rstrip()
        + ("<|im_end|>", "</s>", "\n<|eot_id|>", "<end_of_turn>\n")[index % 4]
    )


@_family(*_PLANS)
def _plan_without_numbers(meant: Meant, _index: int) -> str:
    body = meant.planned(lambda _, task: f"- [ ] {task.text} @{task.who}{after(task)}")
    return f"---\n{head(meant.keys)}\n---\n{body}\n"


@_family(*_PLANS)
def _plan_without_boxes(meant: Meant, _index: int) -> str:
    body = meant.planned(lambda number, task: f"{number}. {task.text} @{task.who}{after(task)}")
    return f"---\n{head(meant.keys)}\n---\n{body}\n"


@_family()
def _chatty_first_line(meant: Meant, index: int) -> str:
    english = ("Sure! Here is my reply:", "Here's the plan.", "Okay, let me look at this request.")
    chinese = ("好的，以下是我的回复：", "这是计划。", "让我来看看这个请求。")
    lines = chinese if meant.topic.language == "zh" else english
    return f"{lines[index % 3]}\n\n{asked_form(meant)}"


@_family()
def _chatty_line_before_a_fence(meant: Meant, index: int) -> str:
    line = (
        "以下是我的回复：" if meant.topic.language == "zh" else "Here is the reply you asked for:"
    )
    return f"{line}\n\n{_fence_around_it(meant, index)}"


@_family()
def _missing_head(meant: Meant, _index: int) -> str:
    return f"{meant.body}\n"


@_family()
def _head_at_the_end(meant: Meant, _index: int) -> str:
    return f"{meant.body}\n\n---\n{head(meant.keys)}\n---\n"


@_family()
def _head_in_a_fence(meant: Meant, _index: int) -> str:
    return f"```yaml\n{head(meant.keys)}\n```\n\n{meant.body}\n"


@_family()
def _labels_of_the_prompt(meant: Meant, index: int) -> str:
    labels = {"verdict": "complete or continue", "complexity": "simple, moderate or complex"}
    if index % 2:
        labels = {"verdict": "complete | continue", "complexity": "[simple|moderate|complex]"}
    keys = {key: labels.get(key, value) for key, value in meant.keys.items()}
    return f"---\n{head(keys)}\n---\n{meant.body}\n"


@_family(*_PLANS)
def _plan_in_prose(meant: Meant, _index: int) -> str:
    parts = (f"{task.who}: {task.text}" for task in meant.tasks)
    return f"---\n{head(meant.keys)}\n---\n{'; '.join(parts)}.\n"


@_family("revision")
def _rest_unchanged(meant: Meant, index: int) -> str:
    line = task_line(2, meant.tasks[1])
    rest = ("(the rest stays as it is)", "...")[index % 2] if index < 10 else "（其余步骤不变）"
    return f"---\n{head(meant.keys)}\n---\n# {meant.topic.title}\n\n{line}\n\n{rest}\n"


def _topics() -> dict[str, tuple[Topic, ...]]:
    """The topics of each language."""
    told = json.loads(Path(__file__).with_name("reply_topics.json").read_text(encoding="utf-8"))
    topics: dict[str, tuple[Topic, ...]] = {"en": (), "zh": ()}
    for each in told:
        tasks = tuple(
            Task(task["text"], task["who"], tuple(task.get("after", ())), task.get("brief", ""))
            for task in each["tasks"]
        )
        topic = Topic(each["title"], each["answer"], each["why"], tasks, each["language"])
        topics[topic.language] += (topic,)
    return topics


_LANGUAGES = _topics()
ENGLISH, CHINESE = _LANGUAGES["en"], _LANGUAGES["zh"]
