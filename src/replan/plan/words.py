"""The words by which people and models say what a plan's attributes mean, in several languages."""

import re


def _any_of(*words: str) -> str:
    """Give a pattern for any of the words, the longest first; blanks stand for any white space."""
    ordered = sorted(words, key=len, reverse=True)
    return "(?:" + "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in ordered) + ")"


STEP = _any_of(
    *("step", "steps", "task", "tasks", "步骤", "第", "schritt", "schritte", "schritten"),
    *("étape", "étapes", "etape", "etapes", "paso", "pasos", "ステップ", "手順", "шаг"),
)
"""What a step is called: "step 2", "步骤2"."""

AND = _any_of("and", "und", "et", "y", "e", "和", "与", "及", "と", "&", "+", ",", "，", "、")
"""What stands between the numbers of a list."""

DEPENDS_ON = _any_of(
    *("depends on", "depend on", "depending on", "depends", "dependencies", "dependency"),
    *("requires step", "requires steps", "needs step", "needs steps", "dependent on"),
    *("依赖于", "依赖", "前置", "前置步骤", "前置任务"),
    *("abhängig von", "hängt ab von", "abhängigkeiten", "dépend de", "dépend des"),
    *("dépendances", "depende de", "depende del", "dependencias", "依存", "依存先"),
)
"""Words that name a dependency beyond doubt."""

AFTER = _any_of("after", "nach", "après", "apres", "después de", "despues de", "後", "之后")
"""Words that name a dependency before a number, and a time before anything else."""

ASSIGNED_TO = _any_of(
    *("assigned to", "assigned", "assignee", "assign to", "specialist", "specialists", "agent"),
    *("agents", "负责人", "执行者", "专家", "zugewiesen an", "zuständig", "assigné à"),
    *("responsable", "asignado a", "担当", "担当者"),
)
"""Words before a specialist's name."""

IF = _any_of("only if", "if", "when", "如果", "falls", "wenn", "si")
CONDITION = _any_of("condition", "run if", "runs if", "条件", "bedingung", "condición")
FAILED = _any_of(
    *("failed", "fails", "fail", "has failed", "失败", "fehlschlägt", "fehlgeschlagen"),
    *("échoue", "a échoué", "falla", "falló", "失敗"),
)
COMPLETED = _any_of(
    *("completed", "completes", "complete", "succeeded", "succeeds", "succeed", "is completed"),
    *("has completed", "完成", "成功", "gelingt", "erledigt", "réussit", "terminé", "completado"),
)
OPTIONAL = _any_of("optional", "可选", "optionnel", "opcional", "任意")
REQUIRED = _any_of("required", "mandatory", "必需")
PRIORITY = _any_of("priority", "prio", "优先级", "priorität", "priorité", "prioridad", "優先度")
RETRIES = _any_of(
    *("retries", "retry", "max retries", "max_retries", "重试", "wiederholungen", "reintentos"),
)
TIMEOUT = _any_of("timeout", "time limit", "time-out", "超时", "zeitlimit", "délai")
WRITES = _any_of(
    *("writes", "writes to", "schreibt", "schreibt in", "écrit", "écrit dans", "escribe"),
    *("escribe en", "写入", "写到", "書き込み", "書き込み先", "пишет"),
)
"""Words that name what a step changes."""

YES = _any_of("true", "yes", "是")
NO = _any_of("false", "no", "否")
NONE = _any_of("none", "nothing", "n/a", "no", "-", "—", "–", "[]", "无", "keine", "aucune")
VAGUE = _any_of(
    *("high", "low", "medium", "normal", "urgent", "critical", "highest", "lowest", "many"),
    *("none", "few", "some", "soon", "short", "long", "unlimited", "高", "低", "中"),
)
"""Words that people write where a number belongs."""

NAME = r"(?:\w|&#[0-9]{1,7};)(?:(?:[\w.-]|&#[0-9]{1,7};)*(?:\w|&#[0-9]{1,7};))?"
"""A specialist's name as it can follow an `@`."""
