"""The words of a reply's values: labels, numbers and flags, as models write them."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Literal, TypeVar

from replan.plan.model import PlanUpdateType
from replan.state.results import ActionType, ExecutionStatus, TaskComplexity

Verdict = Literal["complete", "continue"]
"""What the host says of a round: the work is done, or it goes on."""

_COMPLEXITY: dict[TaskComplexity, str] = {
    TaskComplexity.SIMPLE: """simple|easy|trivial|low|basic|straightforward|简单|簡單|简易|単純|簡単
        |低|einfach|leicht|niedrig|sencillo|sencilla|fácil|baja|bajo|facile|faible|semplice|bassa
        |simples|baixa|간단|간단함|просто|простой|простая|низкая|بسيط|بسيطة""",
    TaskComplexity.MODERATE: """moderate|medium|intermediate|average|中等|一般|适中|普通|中|中程度
        |mittel|mäßig|moderat|moderado|moderada|media|medio|modéré|modérée|moyen|moyenne|moderata
        |moderato|보통|средний|средняя|умеренная|متوسط|متوسطة""",
    TaskComplexity.COMPLEX: """complex|complicated|hard|difficult|high|advanced|multi step|multistep
        |non trivial|nontrivial|not trivial|not simple|复杂|複雜|複雑|困难|困難|高|komplex
        |kompliziert|schwierig|schwer|hoch|complejo|compleja|complicado|complicada|difícil|alta
        |complexe|compliqué|compliquée|difficile|élevée|complesso|complessa|complexo|complexa
        |복잡|복잡함|сложный|сложная|сложно|высокая|معقد|معقدة""",
}

_VERDICT: dict[Verdict, str] = {
    "complete": """complete|completed|done|finished|finish|stop|end|ended|satisfied|accept|accepted
        |final|完成|已完成|结束|停止|完了|終了|fertig|abgeschlossen|vollständig|beendet|terminado
        |completo|completa|completado|completada|finalizado|terminé|terminée|complet|fini|achevé
        |completato|concluído|완료|завершено|готово|выполнено|مكتمل|اكتمل|تم""",
    "continue": """continue|continuing|continued|proceed|more|incomplete|unfinished|in progress
        |revise|replan|retry|go on|keep going|继续|繼續|未完成|続行|継続|続ける|weiter|weitermachen
        |fortsetzen|fortfahren|unvollständig|continuar|incompleto|incompleta|seguir|continuer
        |incomplet|continuare|계속|продолжить|не завершено|متابعة|استمرار|استمر""",
}

_STATUS: dict[ExecutionStatus, str] = {
    ExecutionStatus.SUCCESS: """success|succeeded|successful|ok|done|complete|completed|成功
        |erfolg|erfolgreich|éxito|succès""",
    ExecutionStatus.FAILED: """failed|fail|failure|error|失败|失敗|fehlgeschlagen|fehler|fallido
        |échec""",
    ExecutionStatus.PARTIAL: "partial|partially|partial success|部分|teilweise|parcial|partiel",
}

_ACTION: dict[ActionType, str] = {
    ActionType.DIRECT_ANSWER: """direct answer|answer|answer directly|respond|respond directly
        |直接回答|回答|直接応答|direkte antwort|respuesta directa|réponse directe""",
    ActionType.CREATE_PLAN: """create plan|create a plan|plan|make a plan|planning|创建计划|制定计划
        |計画作成|plan erstellen|crear plan|crear un plan|créer un plan""",
    ActionType.EXECUTE_STEP: "execute step|execute|execute next step|next step|执行步骤",
    ActionType.REFLECT: "reflect|review|反思",
    ActionType.UPDATE_PLAN: """update plan|update the plan|revise plan|revise the plan|replan
        |更新计划|修改计划|plan aktualisieren|actualizar plan|mettre à jour le plan""",
}

_FLAG: dict[bool, str] = {
    True: "true|yes|y|on|1|是|对|はい|ja|sí|si|oui|да|نعم|예",
    False: "false|no|n|off|0|否|不|いいえ|nein|non|нет|لا|아니오|never",
}

_NEGATIONS = frozenset(
    (
        "not",
        "isn't",
        "no",
        "never",
        "nicht",
        "kein",
        "pas",
        "non",
        "ne",
        "n'est",
        "não",
        "не",
        "ليس",
    )
)
# Words that may stand beside a label without changing what it says.
_FILLERS = frozenset(
    """a|an|the|this|is|it|task|question|request|query|work|plan|all|steps|very|quite|fairly|highly
    |rather|pretty|relatively|moderately|extremely|yet|now|fully|complexity|level|label|status
    |verdict|taskcomplexity|value|rated|as|to|be|aufgabe|sehr|tarea|muy|tâche|très""".replace(
        "\n    ", ""
    ).split("|")
)
_LABEL_REACH = 200
_MAX_WORDS = 8
_SEGMENT_END = re.compile(
    r"[\n,;(\[#\u2014\u2013\u3002\uff0c\u3001\uff1b\uff08]"
    r"|\.\s|:\s|\s-+\s|\s?[-=]>|→|\bbecause\b|\bbut\b"
)
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_NUMBER = re.compile(
    r"[~≈\s]*(\d{1,9}+(?:[.,]\d{1,12}+)?+|[.,]\d{1,12}+)\s*"
    r"(?:(%)|(?:/|out of|von|sur|de)\s*(\d{1,6}))?(?=$|[\s,;.()\]}#-])"
    r"(?!\s*(?:to|or|bis|-|\u2013|\.\.)\s*\d)"  # a range is no number
)

Label = TypeVar("Label")


def _index(table: Mapping[Label, str]) -> dict[str, Label]:
    return {
        _folded(word.strip()): label for label, text in table.items() for word in text.split("|")
    }


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


_COMPLEXITY_WORDS = _index(_COMPLEXITY)
_VERDICT_WORDS = _index(_VERDICT)
_STATUS_WORDS = _index(_STATUS)
_ACTION_WORDS = _index(_ACTION)
_FLAG_WORDS = _index(_FLAG)
_UPDATE_WORDS = {kind.value.replace("_", " "): kind for kind in PlanUpdateType}


def complexity_of(value: str) -> TaskComplexity | None:
    """Read a complexity label; a choice of several, or a denial, is none."""
    return _label(value, _COMPLEXITY_WORDS)[0]


def verdict_of(value: str) -> Verdict | None:
    """Read a verdict; "not complete" is continue."""
    label, negated = _label(value, _VERDICT_WORDS)
    if not negated:
        return label
    return "continue" if negated == "complete" else None


def status_of(value: str) -> ExecutionStatus | None:
    """Read how a specialist's work ended."""
    return _label(value, _STATUS_WORDS)[0]


def action_of(value: str) -> ActionType | None:
    """Read an action, by its own name or in a few other words."""
    return _label(value, _ACTION_WORDS)[0]


def update_type_of(value: str) -> PlanUpdateType | None:
    """Read the kind of a plan's change."""
    return _label(value, _UPDATE_WORDS)[0]


def flag_of(value: str) -> bool | None:
    """Read a yes or a no."""
    return _label(value, _FLAG_WORDS)[0]


def number_of(value: str) -> float | None:
    """Read a number from 0 to 1, also written as `80%`, `8/10` or `0,8`.

    A larger number without its scale says nothing certain, so it is none.
    """
    found = _NUMBER.match(value[:_LABEL_REACH].strip(" \t\"'*`_"))
    if found is None:
        return None
    digits, percent, scale = found.groups()
    number = float(digits.replace(",", "."))
    if percent:
        number /= 100
    elif scale:
        number = number / int(scale) if int(scale) else -1.0
    return number if 0 <= number <= 1 else None


def _label(value: str, words: Mapping[str, Label]) -> tuple[Label | None, Label | None]:
    """Find the one label that the beginning of a value names.

    Returns:
        The label, or none; and the label that is denied, or none.
    """
    text = re.sub(r"^[\W_]+", "", _folded(value[:_LABEL_REACH]))
    found = _WORD.findall(_SEGMENT_END.split(text, maxsplit=1)[0].replace("_", " "))
    phrase = " ".join(found)
    if phrase in words:
        return words[phrase], None
    labels = {words[word] for word in found if word in words}
    others = [word for word in found if word not in words]
    if len(labels) != 1 or len(found) > _MAX_WORDS:
        return None, None
    (label,) = labels
    denied = any(word in _NEGATIONS for word in others)
    plain = all(word in _FILLERS or word in _NEGATIONS for word in others)
    if not plain:
        return None, None
    return (None, label) if denied else (label, None)
