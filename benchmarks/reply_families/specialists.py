"""What specialists write: a result, with or without a front matter, and how much it used."""

import json

from reply_families.answers import text_of
from reply_families.drawing import Drawing, Item, Meant, family


def said(d: Drawing, form: str, outcome: str = "failed") -> Item:
    """A specialist's text; `{a}` stands for its result, `{s}` for its status."""
    text = text_of(d)
    status = d.pick(
        *{
            "failed": ("failed", "FAILED", "failure", "error"),
            "partial": ("partial", "partially"),
            "success": ("success", "done", "completed"),
        }[outcome]
    )
    written = (
        form.replace("{a}", text)
        .replace("{s}", status)
        .replace("{talk}", d.say(d.own.talk))
        .replace("{thought}", d.say(d.own.thoughts))
        .replace("{key}", d.own.status)
        .replace("{failed}", d.own.failed)
    )
    return d.item("specialist", written, Meant(outcome, text=text))  # type: ignore[arg-type]


@family
def result_plain(d: Drawing) -> Item:
    """A result, and nothing about how it ended."""
    return said(
        d,
        d.pick(
            "{a}",
            "\n{a}\n",
            "<think>{thought}</think>\n{a}",
            "{a}</s>",
            "{a}<|im_end|>",
            "{a}\n<think>{thought}</think>",
        ),
        "success",
    )


@family
def result_with_status(d: Drawing) -> Item:
    """A front matter as asked for."""
    return said(
        d,
        d.pick(
            "---\nstatus: {s}\nconfidence: 0.3\n---\n{a}",
            "---\nstatus: {s}\nretry: no\n---\n\n{a}",
            "status: {s}\n\n{a}",
        ),
        d.pick("failed", "partial", "success"),
    )


@family
def result_with_wrapped_status(d: Drawing) -> Item:
    """The front matter in a fence, below talk, as JSON, decorated, after thoughts."""
    return said(
        d,
        d.pick(
            "```\n---\nstatus: {s}\n---\n{a}\n```"
            if "```" not in text_of(d)
            else "---\nstatus: {s}\n---\n{a}",
            "{talk}\n\n---\nstatus: {s}\nconfidence: 0.2\n---\n{a}",
            "```yaml\nstatus: {s}\nretry: no\n```\n\n{a}",
            "**status:** {s}\n**confidence:** 0.1\n\n{a}",
            "<think>{thought}</think>\n---\nstatus: {s}\n---\n{a}",
            "---\nStatus: {s}\nConfidence: 10%\n---\n{a}",
            "<think>{thought}</think>\n\n```\nstatus: {s}\n```\n{a}",
            "---\nstatus: {s} (no data)\n---\n{a}",
        ),
    )


@family
def result_status_translated(d: Drawing) -> Item:
    """Key and status in the language."""
    return said(
        d,
        d.pick(
            "---\n{key}: {failed}\nconfidence: 0.2\n---\n{a}", "---\nstatus: {failed}\n---\n{a}"
        ),
    )


@family
def result_in_json(d: Drawing) -> Item:
    """The whole as JSON."""
    text = text_of(d)
    value = {
        "status": d.pick("failed", "error"),
        "confidence": 0.2,
        d.pick("result", "body", "answer", "content"): text,
    }
    written = json.dumps(value, ensure_ascii=False)
    return d.item(
        "specialist", d.pick(written, f"```json\n{written}\n```"), Meant("failed", text=text)
    )


@family
def result_about_status(d: Drawing) -> Item:
    """A text that speaks of a status of something else."""
    text = d.pick(
        "status: on track\n\nAll is well.",
        "---\ntitle: Report\nstatus: open\n---\nText",
        "Status of the order: failed twice.\n\nIt was sent again.",
        '{"orders": 3, "open": 1}',
        "Results:\n\nstatus: failed\nwas found in 3 of 7 logs.",
        "| id | status |\n|---|---|\n| 1 | failed |",
        "```yaml\nservice: api\nstatus: failed\n```",
    )
    return d.item("specialist", text, Meant("success", text=text))


@family
def result_of_nothing(d: Drawing) -> Item:
    """Thoughts or tokens and no result: that is no success."""
    text = d.pick("<think>hm</think>", "", "<think>{0}", "</s>", "  ", "<|im_end|>").replace(
        "{0}", d.own.thoughts[0]
    )
    return d.item("specialist", text, Meant("failed"))


@family
def usage_numbers(d: Drawing) -> Item:
    """Usage numbers that make no sense must neither raise nor be charged below nought."""
    value = d.pick(
        {"input_tokens": -5, "output_tokens": 3, "total_tokens": -2},
        {"input_tokens": 10, "output_tokens": -7, "total_tokens": 3},
        {"input_tokens": 1.5, "output_tokens": 2.7, "total_tokens": 4.2},
        {"input_tokens": "12", "output_tokens": "3", "total_tokens": "15"},
        {"input_tokens": None, "output_tokens": None, "total_tokens": None},
        {"input_tokens": float("nan"), "output_tokens": 1, "total_tokens": 1},
        {"input_tokens": float("inf"), "output_tokens": 1, "total_tokens": 1},
        {"input_tokens": 10**30, "output_tokens": 1, "total_tokens": 1},
        {"input_tokens": True, "output_tokens": False, "total_tokens": 1},
        {"input_tokens": [], "output_tokens": {}, "total_tokens": "x"},
    )
    return d.item("usage", repr(value), Meant("usage"))
