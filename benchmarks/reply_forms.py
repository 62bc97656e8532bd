"""Replies of the host in the form that is asked for, and the deviations of small open models.

`FAMILIES` has a family for each deviation. A family makes 20 replies, ten in English and ten in
Chinese, each from a meaning that is known: `replies()` yields all of them with what they mean.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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


def _topic(language: str, title: str, answer: str, why: str, *tasks: Task) -> Topic:
    return Topic(title, answer, why, tasks, language)


ENGLISH = (
    _topic(
        "en",
        "Compare the EV policies",
        "Both pay a premium; **only** the EU ends sales in 2035.",
        "Two sources must be compared: one for each side.",
        Task("Find the EU's EV policy", "researcher"),
        Task("Find the US's EV policy", "researcher", brief="Name the law, and its date."),
        Task("Compare both, and say which one pays more", "analyst", (1, 2)),
    ),
    _topic(
        "en",
        "Refunds of 2025",
        "Helmets lose 20.31 % and e-bikes 12.09 % of their revenue.\n\n- Helmets: size\n- E-bikes: battery",
        "It needs figures, and the policy that explains them.",
        Task("Rank the products by refunds / revenue", "analyst"),
        Task("Find what the returns policy says (2025)", "researcher"),
        Task("Write a memo of at most 200 words", "writer", (1, 2), "To the head of sales."),
    ),
    _topic(
        "en",
        "A capital",
        "Lima.",
        "One fact, known for long.",
        Task("Look up the capital of Peru", "researcher"),
        Task("Check it against a second source", "researcher", (1,)),
        Task("Say it in one sentence", "writer", (2,)),
    ),
    _topic(
        "en",
        "Supplier to drop",
        "| Supplier | Defects |\n|---|---|\n| Pedalux | 5.1 % |\n\nDrop Pedalux.",
        "Five profiles come from two places and are ranked once.",
        Task("Get lead time and defect rate of each supplier", "analyst"),
        Task("Find the notice periods", "researcher"),
        Task("Rank them: table and two sentences", "writer", (1, 2)),
    ),
    _topic(
        "en",
        "Offer to a school",
        "Dear Sir or Madam,\n\nwe offer you 12 % off.\n\n---\n\nYours faithfully",
        "The customer decides which terms apply.",
        Task("Find the largest order", "analyst"),
        Task("Find the school programme", "researcher", brief="Rates, conditions, validity."),
        Task("Write the letter", "writer", (1, 2)),
    ),
    _topic(
        "en",
        "Square of seven",
        "7 * 7 = **49**",
        "Arithmetic.",
        Task("Calculate the square", "analyst"),
        Task("Explain each line of the calculation", "writer", (1,)),
        Task("Find a picture of a square", "researcher"),
    ),
    _topic(
        "en",
        "A function in Python",
        "It is:\n\n```python\ndef area(side):\n    return side * side\n```",
        "A short program, asked for in one sentence.",
        Task("Collect the requirements", "researcher"),
        Task("Write the function `area(side)`", "writer", (1,)),
        Task("Test it with 0, 1 and 2.5", "analyst", (2,)),
    ),
    _topic(
        "en",
        "Opening hours",
        "Monday to Friday: 9 to 17; on Saturday: closed.",
        "The notes have it; nothing has to be planned.",
        Task("Find the hours of the shop in Lyon", "researcher"),
        Task("Find the hours of the shop in Ghent", "researcher"),
        Task("Put both into one table", "writer", (1, 2)),
    ),
    _topic(
        "en",
        "Traffic of the site",
        "# Traffic\n\nVisits rose by 4 % in May.",
        "A trend needs the numbers of two years.",
        Task("Count the visits of 2024", "analyst"),
        Task("Count the visits of 2025", "analyst"),
        Task("Explain the difference: causes, then advice", "writer", (1, 2)),
    ),
    _topic(
        "en",
        "A greeting",
        "Hello! What can I do for you?",
        "It is a greeting.",
        Task("Ask for what is wanted", "writer"),
        Task("Look up who is writing", "researcher", brief="Name and company.\n\n      No more."),
        Task("Answer in a friendly way", "writer", (1, 2)),
    ),
)
CHINESE = (
    _topic(
        "zh",
        "2024年与2025年退货率比较",
        "退货率由13.98 %降至8.45 %。",
        "需要数据，也需要原因。",
        Task("计算2024年的退货率", "analyst"),
        Task("查找退货政策的变更", "researcher", brief="引用原文，并注明文件名。"),
        Task("给总经理写一份简短的报告", "writer", (1, 2)),
    ),
    _topic(
        "zh",
        "秘鲁的首都",
        "利马。",
        "一个事实：不需要团队。",
        Task("查找秘鲁的首都", "researcher"),
        Task("用第二个来源核对", "researcher", (1,)),
        Task("用一句话回答", "writer", (2,)),
    ),
    _topic(
        "zh",
        "供应商评估",
        "| 供应商 | 次品率 |\n|---|---|\n| 甲 | 5.1 % |\n\n建议停止与甲合作。",
        "需要汇总五家供应商的情况。",
        Task("列出每家供应商的交货期和次品率", "analyst"),
        Task("查找合同中的通知期限", "researcher"),
        Task("排名并写出建议", "writer", (1, 2), "一张表，两句话。"),
    ),
    _topic(
        "zh",
        "营业时间",
        "周一至周五：9点至17点；周六休息。",
        "笔记里已有答案。",
        Task("查找里昂店的营业时间", "researcher"),
        Task("查找根特店的营业时间", "researcher"),
        Task("合并成一张表", "writer", (1, 2)),
    ),
    _topic(
        "zh",
        "给学校的信",
        "尊敬的老师：\n\n我们提供12 %的折扣。\n\n---\n\n此致敬礼",
        "客户的类型决定条款。",
        Task("找出最大的订单", "analyst"),
        Task("查找学校优惠的条件", "researcher"),
        Task("写信", "writer", (1, 2)),
    ),
    _topic(
        "zh",
        "七的平方",
        "7 × 7 = **49**",
        "简单的算术。",
        Task("计算平方", "analyst"),
        Task("解释每一行计算", "writer", (1,)),
        Task("找一张正方形的图片", "researcher"),
    ),
    _topic(
        "zh",
        "一个Python函数",
        "如下：\n\n```python\ndef area(side):\n    return side * side\n```",
        "一句话就能说明的短程序。",
        Task("收集需求", "researcher"),
        Task("编写函数 `area(side)`", "writer", (1,)),
        Task("用0、1和2.5测试", "analyst", (2,)),
    ),
    _topic(
        "zh",
        "网站访问量",
        "# 访问量\n\n五月增长了4 %。",
        "趋势需要两年的数字。",
        Task("统计2024年的访问量", "analyst"),
        Task("统计2025年的访问量", "analyst", brief="按月列出。\n\n      不含机器人。"),
        Task("说明差异的原因", "writer", (1, 2)),
    ),
    _topic(
        "zh",
        "电动车政策比较",
        "两者都有补贴，**只有**欧盟在2035年停售。",
        "需要比较两个来源：各一个。",
        Task("查找欧盟的电动车政策", "researcher"),
        Task("查找美国的电动车政策", "researcher"),
        Task("比较两者，指出补贴更高的一方", "analyst", (1, 2)),
    ),
    _topic(
        "zh",
        "问候",
        "您好！有什么可以帮您？",
        "这是问候。",
        Task("询问需要什么", "writer"),
        Task("查找来信人的资料", "researcher"),
        Task("友好地答复", "writer", (1, 2)),
    ),
)
