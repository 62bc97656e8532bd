"""Texts that would do harm on a page, each with a mark, and events that have them everywhere."""

HARM = """\
<script>window.pwned=1</script><img src=http://evil.example/a.png onerror="window.pwned=1">
<svg onload="window.pwned=1"></svg><iframe srcdoc="<script>parent.pwned=1</script>"></iframe>
<style>body{display:none}</style><div hx-post="/enter" hx-trigger="load">x</div>
<a data-hx-get="/leave" data-hx-trigger="load">y</a><base href="http://evil.example/">
<meta http-equiv="refresh" content="0;url=http://evil.example/"><form action=http://evil.example>
</pre></title></textarea>" onmouseover="window.pwned=1" x='{{ 7*7 }}
[a](javascript:window.pwned=1) ![b](http://evil.example/b.png) <javascript:window.pwned=1>
[c]: http://evil.example/c "x\u202e"
"""


class Harm:
    """Harmful texts, each with a mark of its own by which it is found on a page."""

    def __init__(self):
        self.marks = []

    def __call__(self, place):
        mark = f"zq{len(self.marks)}q"
        self.marks.append((mark, place))
        return f"{mark} {place} {HARM}"

    def line(self, place):
        return " ".join(self(place).split())


def harmful_events(harm, at):
    """Events of all kinds that tell what others wrote."""
    step = {"step_id": 1, "specialist": "worker", "attempt": 1}
    call = {**step, "node": harm("node"), "call": harm("call"), "seconds": 0.1}
    model = {**call, "model": harm("model name")}
    fact = {"step_id": 1, "specialist": "worker", "node": "specialist"}
    told = [
        ("model_invoked", {**model, "prompt": [{"role": harm("role"), "ref": "p", "length": 9}]}),
        (
            "model_completed",
            {
                **model,
                "error": harm("model error"),
                "input_tokens": 1,
                "output_tokens": 1,
                "cost": 0.1,
                "reply": {"role": "assistant", "ref": "a", "length": 9},
            },
        ),
        (
            "tool_completed",
            {
                **call,
                "call": "t1",
                "tool": harm("tool name"),
                "arguments": {harm("argument name"): harm("argument")},
                "refs": {"arguments": harm("arguments ref")},
                "effects": "unsafe",
                "status": "failed",
                "result": harm("tool result"),
                "approval": "edited",
            },
        ),
        (
            "knowledge_retrieved",
            {
                "node": "think",
                "mode": "stuff",
                "sources": [
                    {"source": harm("source"), "line": 3, "heading": harm("heading"), "score": 1.0}
                ],
                "skipped": [harm("left out")],
                "unused": [harm("unused")],
                "failed": [harm("failed")],
            },
        ),
        (
            "knowledge_retrieved",
            {"node": "think", "mode": "stuff", "error": harm("knowledge error")},
        ),
        (
            "memory_applied",
            {
                **step,
                "specialist": harm("memory of"),
                "node": "specialist",
                "mode": "window",
                "visible": 1,
                "summarised": 0,
                "omitted": 0,
                "truncated": 0,
            },
        ),
        ("memory_summary", {"error": harm("summary error"), "covered": 1, "calls": 0}),
        ("fact_remembered", {**fact, "fact_id": harm("fact id"), "text": harm("fact")}),
        (
            "fact_forgotten",
            {**fact, "fact_id": harm("forgotten id"), "text": harm("forgotten fact")},
        ),
        ("phase_entered", {**step, "phase": harm("phase")}),
        ("feedback_generated", {"text": harm("feedback"), "should_continue": True}),
        ("limit_reached", {"limit": harm("limit"), "value": 1, "scope": harm("scope")}),
        (
            "reply_parse_failed",
            {
                "node": harm("unreadable node"),
                "problem": harm("problem"),
                "fallback": harm("fallback"),
            },
        ),
        (
            "run_corrected",
            {"action": "retry", "step_id": 1, "by": harm("corrected by"), "origin": harm("origin")},
        ),
        (
            "run_steered",
            {
                "kind": "message",
                "status": "refused",
                "request": "m1",
                "by": harm("steered by"),
                "text": harm("message"),
                "reason": harm("refusal"),
            },
        ),
        (
            "approval_requested",
            {"reason": harm("approval reason"), "problem": harm("approval problem")},
        ),
        (
            "plan_updated",
            {
                "version": 2,
                "by": "model",
                "changes": {
                    "title": harm("new title"),
                    "added": [
                        {
                            "index": 0,
                            "step": {
                                "id": 9,
                                "description": harm("new step"),
                                "assigned_to": harm("new one"),
                            },
                        }
                    ],
                    "modified": {"1": {"description": harm("new description")}},
                },
            },
        ),
        (
            "answer_received",
            {
                **step,
                "key": harm("key"),
                "kind": "question",
                "action": "answered",
                "by": harm("answered by"),
                "text": harm("answer text"),
            },
        ),
    ]
    return [{"type": kind, "at": at.isoformat(), "round": 1, **details} for kind, details in told]
