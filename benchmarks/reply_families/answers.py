"""Simple answers: of `think`, and of the calls that ask for nothing but an answer."""

from reply_families.drawing import Drawing, Item, Meant, family

LIST = "Options:\n\n- [ ] Milk\n- [ ] Bread"
CODE = "Use this:\n\n```python\nfor step in range(3):\n    print(step)\n```"
RULES = "First part.\n\n---\n\nSecond part."
TABLE = "| City | Price |\n|---|---|\n| Oslo | 45 |"


def text_of(d: Drawing) -> str:
    """The answer."""
    return d.pick(*d.own.answers, CODE, RULES, d.own.answers[0], TABLE, *d.own.answers)


def simple(d: Drawing, form: str, text: str | None = None, *, ask: bool = False) -> Item:
    """A think reply in a form; `{a}` stands for the answer."""
    text = text_of(d) if text is None else text
    front = d.head(value=d.pick("simple", "simple", "easy"))
    written = (
        form.replace("{front}", front)
        .replace("{keys}", front.strip("-\n"))
        .replace("{a}", text)
        .replace("{thought}", d.say(d.own.thoughts))
        .replace("{key}", d.own.complexity[0])
        .replace("{value}", d.own.simple[0])
    )
    return d.item("think", written, Meant("answer", text=text, ask_is_right=ask))


@family
def answer_plain(d: Drawing) -> Item:
    """An answer as it should be."""
    return simple(d, d.pick("{front}{a}", "{front}\n{a}\n", "{keys}\n\n{a}"))


@family
def answer_translated(d: Drawing) -> Item:
    """Label and key in the language."""
    return simple(d, d.pick("---\n{key}: {value}\n---\n{a}", "{key}: {value}\n\n{a}"))


@family
def answer_without_label(d: Drawing) -> Item:
    """An answer without front matter: it may be taken or asked about."""
    return simple(d, "{a}", ask=True)


@family
def answer_after_thoughts(d: Drawing) -> Item:
    """Thoughts before the answer."""
    return simple(
        d,
        d.pick(
            "<think>{thought}</think>\n{front}{a}",
            "{front}<think>\n{thought}\n</think>\n\n{a}",
            "{thought}\n</think>\n{front}{a}",
            "<reasoning>{thought}</reasoning>{front}{a}",
        ),
    )


@family
def answer_before_thoughts(d: Drawing) -> Item:
    """Thoughts behind the answer."""
    return simple(
        d,
        d.pick(
            "{front}{a}\n\n<think>{thought}</think>",
            "{front}{a}\n<thinking>\n{thought}\n</thinking>",
            "{front}{a}\n\n<think>{thought}",
            "{front}{a}\n\n[THINK]{thought}[/THINK]",
        ),
    )


@family
def answer_after_unknown_thoughts(d: Drawing) -> Item:
    """Thoughts in unknown tags around the answer."""
    return simple(
        d,
        d.pick(
            "<analysis>{thought}</analysis>\n{front}{a}",
            "{front}<analysis>\n{thought}\n</analysis>\n\n{a}",
            "<inner_monologue>{thought}</inner_monologue>\n\n{front}{a}",
            "<|begin_of_thought|>{thought}<|end_of_thought|>\n\n{front}{a}",
            "```thinking\n{thought}\n```\n{front}{a}",
            "{front}<scratch_pad>{thought}</scratch_pad>\n{a}",
        ),
    )


@family
def answer_end_token(d: Drawing) -> Item:
    """An end token behind the answer."""
    return simple(
        d,
        "{front}{a}"
        + d.pick(
            "</s>",
            "<|im_end|>",
            "\n<|eot_id|>",
            "<|im_end|>\n<|im_start|>user\nThanks!",
            "<|endoftext|>",
            "<end_of_turn>",
        ),
    )


@family
def answer_in_json(d: Drawing) -> Item:
    """The answer in JSON."""
    import json  # noqa: PLC0415

    text = text_of(d)
    value: dict[str, object] = {
        "complexity": "simple",
        "reasoning": "x",
        d.pick("answer", "body", "content", "response"): text,
    }
    value = d.pick(value, {"response": value}, value, {"reply": value})
    written = json.dumps(value, ensure_ascii=d.index % 2 == 0)
    return d.item("think", d.pick(written, f"```json\n{written}\n```"), Meant("answer", text=text))


@family
def answer_with_lists(d: Drawing) -> Item:
    """An answer with lists, boxes, steps or JSON in it is no plan."""
    text = d.pick(
        LIST,
        "1. Boil water\n2. Add tea\n3. Wait",
        '{"name": "Lamp", "price": 3}',
        "Step 1: open it.\n\nStep 2: close it.",
        '[{"id": 1, "name": "Lamp"}]',
        "```yaml\n- id: 1\n  name: Lamp\n```",
        TABLE,
        "- **Price:** 3\n- **Time:** 2",
        "<ul><li>Milk</li></ul>",
        "1. First\n   - a\n2. Second (after 1)",
    )
    return simple(d, "{front}{a}", text)


@family
def answer_about_the_format(d: Drawing) -> Item:
    """An answer that speaks of tags, tokens and front matter."""
    text = d.pick(
        "Write `</s>` at the end.",
        "The tag <think> opens thoughts, </think> closes them.",
        "A front matter begins with `---` and ends with `---`.",
        "The token <|im_end|> ends a turn in ChatML.",
        "Use `complexity: simple` there.",
    )
    return simple(d, "{front}{a}", text)


@family
def answer_of_direct_call(d: Drawing) -> Item:
    """The call that asks for nothing but an answer."""
    text = text_of(d)
    thought = d.say(d.own.thoughts)
    written = d.pick(
        text,
        f"<think>{thought}</think>\n{text}",
        f"{text}</s>",
        f"---\ncomplexity: simple\n---\n{text}",
        f"<answer>{text}</answer>",
        f"{text}\n<think>{thought}</think>",
        f"{text}<|im_end|>",
        f"```markdown\n{text}\n```" if "```" not in text else text,
        f"<think>{thought}\n</think>\n\n---\nverdict: complete\n---\n{text}",
        f"{text}\n",
    )
    return d.item("answer", written, Meant("answer", text=text))


@family
def prompt_echoed(d: Drawing) -> Item:
    """The whole system prompt comes back: nobody may take it for an answer."""
    prompt = (
        "You host a team of specialists. Judge the last request of the conversation: `simple` if one good answer of your own settles it, "
        "`moderate` or `complex` if it needs the team. Write in the language of the request.\n\nReply with these lines, then the body:\n\n---\n"
        "complexity: simple, moderate or complex\nscore: 0.0 to 1.0\nreasoning: one sentence\nnext_action: direct_answer or create_plan\n---\n"
        "The body of a simple reply: the answer.\n"
    )
    return d.item(
        "think",
        d.pick(prompt, prompt[prompt.index("Reply with") :], "Sure.\n\n" + prompt),
        Meant(None),
    )
