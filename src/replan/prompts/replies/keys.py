"""The keys of replies: what each is called, which values it has, and in which words."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal

from replan.plan.model import PlanUpdateType
from replan.state.results import ActionType

Kind = Literal["label", "number", "flag", "text"]

_MARKS = " \t\n.!`*_\"'“”。！"  # noqa: RUF001 - replies come in Chinese, too
_MOST_PERCENT = 100


@lru_cache(maxsize=1_024)
def squeezed(text: str) -> str:
    """Return a word without the differences that do not matter: case, width, blanks, `_`, `-`."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in folded if sign.isalnum())


@dataclass(frozen=True)
class Key:
    """A key of a reply."""

    name: str
    kind: Kind = "text"
    aliases: tuple[str, ...] = ()  # other names of it
    # Of a label, each value with other words for it; the first word of all is the value itself.
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def value_of(self, written: str) -> str | None:
        """Return the value that was written: a label's own name; None if it has no such value."""
        match self.kind:
            case "text":
                return written
            case "number":
                return _number(written[:_LONGEST].strip(_MARKS))
            case _:
                return self._words.get(squeezed(written[:_LONGEST].strip(_MARKS)))

    @cached_property
    def _words(self) -> dict[str, str]:
        values = _FLAG if self.kind == "flag" else self.values
        return {squeezed(word): v for v, words in values.items() for word in (v, *words)}

    @property
    def labels(self) -> str:
        """Its values, for people and models."""
        return ", ".join(self.values)


_LONGEST = 60
_FLAG = {"yes": ("true", "是"), "no": ("false", "否")}
_ACTIONS = {str(action): () for action in ActionType}


def _number(text: str) -> str | None:
    """Read a number from 0 to 1, or per cent."""
    try:
        number = float(text.removesuffix("%")) / (_MOST_PERCENT if text.endswith("%") else 1)
    except ValueError:
        return None
    return str(number) if 0 <= number <= 1 else None


def _table(*keys: Key) -> dict[str, Key]:
    return {squeezed(name): key for key in keys for name in (key.name, *key.aliases)}


COMPLEXITY = Key(
    "complexity",
    "label",
    ("复杂度", "复杂性"),
    {"simple": ("easy", "简单"), "moderate": ("medium", "中等"), "complex": ("复杂",)},
)
VERDICT = Key(
    "verdict",
    "label",
    ("结论", "判断"),
    {"complete": ("completed", "done", "完成", "已完成"), "continue": ("继续",)},
)
STATUS = Key(
    "status",
    "label",
    ("状态",),
    {"success": ("succeeded", "成功"), "partial": ("部分完成",), "failed": ("failure", "失败")},
)
REASON = Key(
    "reason",
    aliases=("error", "cause", "problem", "message", "note", "details", "explanation", "原因"),
)
REASONING = Key("reasoning", aliases=("理由", "推理"))
FEEDBACK_TEXT = Key("feedback", aliases=("反馈",))
UPDATE = Key("update", aliases=("更新",))

ANSWER_STEP = Key("answer_step", aliases=("答案步骤",))

THINK = _table(
    COMPLEXITY,
    Key("score", "number", ("complexity_score",)),
    REASONING,
    Key("next_action", "label", values=_ACTIONS),
    ANSWER_STEP,
)
FEEDBACK = _table(
    VERDICT,
    FEEDBACK_TEXT,
    Key("suggested_action", "label", values=_ACTIONS),
    UPDATE,
    Key("plan_update_type", "label", values={str(kind): () for kind in PlanUpdateType}),
    ANSWER_STEP,
)
SPECIALIST = _table(
    STATUS,
    Key("confidence", "number", ("置信度",)),
    Key("replan_needed", "flag"),
    Key("retry", "flag"),
    REASON,
)
HOST = THINK | FEEDBACK
"""The keys of all replies of the host, by their squeezed names."""

BODY = "body"
_BODIES = (
    f"{BODY} answer final_answer plan steps revised_plan content response result output text "
    "答案 回答 计划 正文 结果"
)
BODIES = frozenset(map(squeezed, _BODIES.split()))
"""Names under which a JSON object has the body."""


def _format(name: str, *keys: Key) -> dict[str, Any]:
    """What a provider is asked to enforce: a JSON object with these keys, and with the body."""
    fields = {
        key.name: {"type": "string", "enum": [*key.values]} if key.values else {"type": "string"}
        for key in (*keys, Key(BODY))
    }
    schema = {
        "type": "object",
        "properties": fields,
        "required": [*fields],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


THINK_REPLY = _format("think", COMPLEXITY, REASONING)
FEEDBACK_REPLY = _format("feedback", VERDICT, UPDATE, FEEDBACK_TEXT)
