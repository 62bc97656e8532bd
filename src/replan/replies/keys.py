"""The keys of a reply's front matter, in the spellings and languages that models use."""

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

from replan.replies.labels import (
    action_of,
    complexity_of,
    flag_of,
    number_of,
    status_of,
    verdict_of,
)

BODY_KEYS = frozenset(
    ("answer", "plan", "body", "content", "response", "finalanswer", "revisedplan", "markdown")
) | frozenset(("steps", "tasks", "答案", "回答", "计划", "計画", "antwort", "respuesta", "réponse"))
"""What the body is called where it stands under a key of its own."""

LABEL_KEYS = frozenset(
    ("complexity", "score", "next_action", "verdict", "suggested_action", "plan_update_type")
) | frozenset(("status", "confidence", "replan_needed", "retry"))
"""The keys whose value is one word or number; prose cannot continue such a value."""

_KEYS: dict[str, str] = {
    "complexity": """difficulty taskcomplexity complexitylevel 复杂度 复杂性 複雜度 複雑さ 複雑度
        难度 難易度 komplexität komplexitaet complejidad complexité complessità complexidade 복잡도
        сложность التعقيد تعقيد""",
    "score": """complexityscore 分数 评分 得分 スコア punktzahl bewertung puntuación puntaje
        punteggio pontuação 점수 оценка الدرجة""",
    "reasoning": """reason rationale justification 理由 原因 根拠 begründung razonamiento
        justificación raisonnement motivazione raciocínio 이유 обоснование السبب""",
    "next_action": """action nextstep 下一步 下一步行动 次のアクション nächsteaktion
        nächsterschritt próximaacción siguienteacción prochaineaction الإجراءالتالي""",
    "verdict": """decision judgement judgment status 结论 結論 判断 判定 决定 urteil entscheidung
        veredicto decisión décision verdetto decisão 판정 вердикт решение الحكم القرار""",
    "feedback": """反馈 反饋 フィードバック rückmeldung comentarios retroalimentación commentaire
        commentaires 피드백 отзыв ملاحظات""",
    "suggested_action": """suggestion 建议操作 建议行动 推奨アクション vorgeschlageneaktion
        acciónsugerida actionsuggérée""",
    "update": """planupdate planupdatesuggestion updatesuggestion 更新 aktualisierung actualización
        miseàjour""",
    "plan_update_type": "updatetype 更新类型",
    "status": "outcome 状态 状態 estado statut",
    "confidence": "置信度 信頼度 konfidenz confianza confiance",
    "replan_needed": "replan needsreplan",
    "retry": "canretry retryable",
}

# A flag says with yes or no what its key's label says in a word: key, word for yes, word for no.
_FLAGS: dict[str, tuple[str, str, str]] = {
    "shouldcontinue": ("verdict", "continue", "complete"),
    "continue": ("verdict", "continue", "complete"),
    "iscomplete": ("verdict", "complete", "continue"),
    "iscompleted": ("verdict", "complete", "continue"),
    "complete": ("verdict", "complete", "continue"),
    "completed": ("verdict", "complete", "continue"),
    "done": ("verdict", "complete", "continue"),
    "finished": ("verdict", "complete", "continue"),
    "iscomplex": ("complexity", "complex", "simple"),
    "needsplan": ("complexity", "complex", "simple"),
    "issimple": ("complexity", "simple", "complex"),
    "issimpletask": ("complexity", "simple", "complex"),
}


def squeezed(key: str) -> str:
    """Give a key without the differences that do not matter: case, width, blanks, `_`, `-`."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", key).casefold())


@lru_cache(maxsize=16)
def _key_table(known: frozenset[str]) -> dict[str, tuple[str, bool]]:
    aliases = {
        squeezed(alias): (key, False)
        for key, text in _KEYS.items()
        if key in known
        for alias in text.split()
    }
    return aliases | {squeezed(key): (key, True) for key in known}


def find_key(written: str, known: Collection[str]) -> tuple[str, bool] | None:
    """Find the key that is meant by what stands before a colon.

    Returns:
        The key, and whether its own name was written rather than another word for it.
    """
    word = squeezed(written)
    if word in _FLAGS:
        key = _FLAGS[word][0]
        return (key, False) if key in known else None
    return _key_table(frozenset(known)).get(word) if word else None


def spelled_out(written: str, value: str) -> str:
    """Turn the yes or no of a flag such as `should_continue` into the label that it stands for."""
    flag = _FLAGS.get(squeezed(written))
    answer = flag_of(value) if flag else None
    if flag is None or answer is None:
        return value
    return flag[1] if answer else flag[2]


def fits(key: str, value: str) -> bool:
    """Whether this value is certainly one of the key's own: a label or a number, not prose."""
    match key:
        case "complexity":
            return complexity_of(value) is not None or number_of(value) is not None
        case "score" | "confidence":
            return number_of(value) is not None
        case "verdict":
            return verdict_of(value) is not None
        case "next_action" | "suggested_action":
            return action_of(value) is not None
        case "status":
            return status_of(value) is not None
        case _:
            return False
