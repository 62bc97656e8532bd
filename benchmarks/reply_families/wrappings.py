"""What stands around a plan: front matter, thoughts, fences, tokens, talk and echoes."""

from reply_families.drawing import Drawing, Item, Meant, family


def body(d: Drawing) -> str:
    """The plan as it should be."""
    return d.titled(d.listed())


def wrapped(d: Drawing, *forms: str) -> Item:
    """A whole reply in one of some forms; `{front}` is the front matter, `{plan}` the plan."""
    return d.plan(_filled(d, d.pick(*forms)))


def _filled(d: Drawing, form: str) -> str:
    values = {
        "{front}": d.head(),
        "{keys}": d.head().strip("-\n"),
        "{plan}": body(d),
        "{thought}": d.say(d.own.thoughts),
        "{talk}": d.say(d.own.talk),
        "{close}": d.say(d.own.closing),
        "{reason}": d.say(d.own.reasons),
        "{key}": d.words.complexity[0],
        "{value}": d.words.complex[d.index % 3 if d.words.complex[0] != "complex" else 0],
    }
    for mark, value in values.items():
        form = form.replace(mark, value)
    return form


@family
def keys_decorated(d: Drawing) -> Item:
    """Keys in bold, as bullets, headings, with other signs."""
    return wrapped(
        d,
        "---\n**complexity:** complex\n**reasoning:** {reason}\n---\n{plan}",
        "---\n- complexity: complex\n- reasoning: {reason}\n---\n{plan}",
        "### Complexity: complex\n### Reasoning: {reason}\n\n{plan}",
        "---\nComplexity = complex\nReasoning = {reason}\n---\n{plan}",
        "**Complexity**: complex\n\n**Reasoning**: {reason}\n\n{plan}",
        '---\n"complexity": "complex",\n"reasoning": "{reason}"\n---\n{plan}',
        "| complexity | complex |\n|---|---|\n| reasoning | {reason} |\n\n{plan}",
        "***\ncomplexity: complex\n***\n{plan}",
    )


@family
def keys_bare(d: Drawing) -> Item:
    """No delimiters, one of them, or all on a line."""
    return wrapped(
        d,
        "{keys}\n\n{plan}",
        "{keys}\n---\n{plan}",
        "---\n{keys}\n\n{plan}",
        "--- complexity: complex next_action: create_plan ---\n{plan}",
        "complexity: complex\n{plan}",
        "{keys}\n{plan}",
    )


@family
def keys_translated(d: Drawing) -> Item:
    """The key of the label and the label in the language."""
    return wrapped(
        d,
        "---\n{key}: {value}\n---\n{plan}",
        "---\n{key}: {value}\nscore: 0.8\n---\n\n{plan}",
        "{key}: {value}\n\n{plan}",
        "**{key}**: {value}\n\n{plan}",
    )


@family
def labels_decorated(d: Drawing) -> Item:
    """The label with more around it."""
    label = d.pick(
        "complex.",
        "**complex**",
        "complex (several sources)",
        "Complex - needs the team",
        "moderate/complex",
        "very complex",
        "COMPLEX",
        "`complex`",
        "complex because of the data",
        "medium-high",
    )
    plain = Meant("plan", d.tasks, ask_is_right=d.index in (4, 9))
    return d.item("think", d.head(value=label) + body(d), plain)


@family
def score_only(d: Drawing) -> Item:
    """No label but a score, in one of its spellings."""
    score = d.pick("0.8", "0,9", "85%", "8/10", "0.75 (high)", ".9", "1.0", "~0.8")
    return d.plan(f"---\nscore: {score}\nreasoning: {d.own.reasons[0]}\n---\n{body(d)}")


@family
def label_missing(d: Drawing) -> Item:
    """A plan without any front matter."""
    return wrapped(d, "{plan}", "{talk}\n\n{plan}", "{plan}\n\n{close}", "```markdown\n{plan}\n```")


@family
def front_matter_elsewhere(d: Drawing) -> Item:
    """The front matter below the plan, in a fence of its own, or twice."""
    return wrapped(
        d,
        "{plan}\n\n{front}",
        "```yaml\n{keys}\n```\n\n{plan}",
        "{talk}\n\n{front}\n{plan}",
        "{front}\n{front}\n{plan}",
        "```\n{front}```\n\n{plan}",
        "---\n{front}\n{plan}",
        "{talk}\n\n```yaml\n{keys}\n```\n\n{plan}",
    )


@family
def fenced(d: Drawing) -> Item:
    """The whole, or the plan, in a fence."""
    return wrapped(
        d,
        "```markdown\n{front}{plan}\n```",
        "{front}```markdown\n{plan}\n```",
        "{front}```\n{plan}\n```",
        "{talk}\n\n```markdown\n{front}{plan}\n```",
        "```\n{front}\n{plan}\n```\n\n{close}",
        "{front}{talk}\n\n```markdown\n{plan}\n```\n\n{close}",
        "{front}```md\n{plan}",
        "~~~\n{front}{plan}\n~~~",
        "{front}```plan\n{plan}\n```",
        "```markdown {front}{plan}\n```",
    )


@family
def thoughts_before(d: Drawing) -> Item:
    """Thoughts in a tag before the reply, also with a draft in them."""
    return wrapped(
        d,
        "<think>\n{thought}\n</think>\n\n{front}{plan}",
        "<thinking>{thought}</thinking>\n{front}{plan}",
        "<reasoning>\n{thought}\n</reasoning>\n{front}{plan}",
        "{thought}\n</think>\n\n{front}{plan}",
        "<think>\n{thought}\n- [ ] 1. Something else\n---\ncomplexity: simple\n---\n</think>\n{front}{plan}",
        "<think>{thought}</think>\n<think>{thought}</think>\n{front}{plan}",
        "[THINK]{thought}[/THINK]{front}{plan}",
        "<think></think>\n\n{front}{plan}",
        "<thought>\n{thought}\n</thought>\n{front}{plan}",
        "◁think▷{thought}◁/think▷{front}{plan}",
    )


@family
def thoughts_in_unknown_tags(d: Drawing) -> Item:
    """Thoughts in tags of models' own making."""
    return wrapped(
        d,
        "<analysis>\n{thought}\n</analysis>\n\n{front}{plan}",
        "<inner_monologue>{thought}</inner_monologue>\n{front}{plan}",
        "[THOUGHT]\n{thought}\n[/THOUGHT]\n{front}{plan}",
        "<|begin_of_thought|>\n{thought}\n<|end_of_thought|>\n\n{front}{plan}",
        "```thinking\n{thought}\n```\n\n{front}{plan}",
        "<planning>\n{thought}\n</planning>\n{front}{plan}",
        "<unused94>thought\n{thought}<unused95>{front}{plan}",
        "<details><summary>Reasoning</summary>\n{thought}\n</details>\n\n{front}{plan}",
        "<antthinking>{thought}</antthinking>\n{front}{plan}",
        "<reflexion>\n{thought}\n</reflexion>\n{front}{plan}",
    )


@family
def thoughts_unclosed(d: Drawing) -> Item:
    """Thoughts that are never closed, with the reply below them."""
    return wrapped(d, "<think>\n{thought}\n\n{front}{plan}", "<think>{thought}\n{front}\n{plan}")


@family
def thoughts_within(d: Drawing) -> Item:
    """Thoughts between front matter and plan."""
    return wrapped(
        d,
        "{front}<think>\n{thought}\n</think>\n\n{plan}",
        "{front}<think>\n{thought}\n1. Something else @nobody\n</think>\n{plan}",
        "{front}<reasoning>{thought}</reasoning>\n\n{plan}",
        "{front}<analysis>\n{thought}\n</analysis>\n\n{plan}",
    )


@family
def thoughts_behind(d: Drawing) -> Item:
    """Thoughts behind the plan, closed or not."""
    return wrapped(
        d,
        "{front}{plan}\n\n<think>\n{thought}\n</think>",
        "{front}{plan}\n<think>{thought}",
        "{front}{plan}\n\n<reasoning>\n- [ ] {thought}\n</reasoning>",
        "{front}{plan}\n\n</think>",
        "{front}{plan}\n\n[THINK]{thought}[/THINK]",
    )


@family
def thoughts_in_prose(d: Drawing) -> Item:
    """Several lines of thoughts without a tag before the front matter."""
    return wrapped(
        d,
        "{thought}\n\n{thought}\n\n{thought}\n\n{front}{plan}",
        "Thinking Process:\n\n1. {thought}\n2. {thought}\n\n{front}{plan}",
        "**Thinking**\n\n{thought}\n\n{thought}\n\n**Reply**\n\n{front}{plan}",
    )


@family
def channels(d: Drawing) -> Item:
    """Raw channels of a harmony model."""
    return wrapped(
        d,
        "<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>final<|message|>{front}{plan}<|return|>",
        "<|channel|>final<|message|>{front}{plan}",
        "<|start|>assistant<|channel|>final<|message|>{front}{plan}<|end|>",
    )


@family
def end_tokens(d: Drawing) -> Item:
    """Tokens that end a reply, and what servers with a wrong template let follow."""
    token = d.pick(
        "</s>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|endoftext|>",
        "[END]",
        "<end_of_turn>",
        "<|im_end|>\n<|im_start|>user\nThanks!",
        "</s>[INST] Next [/INST]",
        "<|end|>",
        "<｜end▁of▁sentence｜>",
    )
    return d.plan(d.head() + body(d) + d.pick("", "\n") + token)


@family
def start_tokens(d: Drawing) -> Item:
    """Tokens of a template before the reply."""
    return wrapped(
        d,
        "<|im_start|>assistant\n{front}{plan}",
        "<s>{front}{plan}</s>",
        "<|start_header_id|>assistant<|end_header_id|>\n\n{front}{plan}",
        "Assistant: {front}{plan}",
        "assistant\n\n{front}{plan}",
        "<start_of_turn>model\n{front}{plan}",
        "[/INST] {front}{plan}",
    )


@family
def answer_tags(d: Drawing) -> Item:
    """The reply in a tag for answers."""
    tag = d.pick("answer", "response", "output", "final", "reply")
    return d.plan(f"<{tag}>\n{d.head()}{body(d)}\n</{tag}>")


@family
def talk_around(d: Drawing) -> Item:
    """A word before and after."""
    return wrapped(
        d,
        "{talk}\n\n{front}{plan}",
        "{front}{plan}\n\n{close}",
        "{talk}\n{front}\n{talk}\n\n{plan}\n\n---\n\n{close}",
        "{front}{plan}\n\n**Note:** {close}",
        "{front}## Plan\n\n{plan}\n\n## Next\n\n{close}",
    )


@family
def format_echoed(d: Drawing) -> Item:
    """The prompt's own form stands before the reply."""
    form = "---\ncomplexity: simple, moderate or complex\nscore: 0.0 to 1.0\nreasoning: one sentence\nnext_action: direct_answer or create_plan\n---"
    return wrapped(
        d,
        form + "\n\n{front}{plan}",
        "Reply with these lines, then the body:\n\n" + form + "\n\n{front}{plan}",
        "```\n" + form + "\n```\n\n{front}{plan}",
    )


@family
def label_echoed(d: Drawing) -> Item:
    """The label is the prompt's list of labels: nobody can know which."""
    label = d.pick(
        "simple, moderate or complex",
        "simple, moderate, complex",
        "simple | moderate | complex",
        "simple/moderate/complex",
        "simple or complex",
        "simple → complex",
        "[simple, moderate, complex]",
        "<simple|moderate|complex>",
    )
    return d.item(
        "think",
        f"---\ncomplexity: {label}\nreasoning: {d.own.reasons[0]}\n---\n{d.own.answers[0]}",
        Meant(None),
    )


@family
def template_echoed(d: Drawing) -> Item:
    """The template of the prompt stands for the plan: nobody can know what was meant."""
    return d.item(
        "think",
        d.head()
        + d.pick(
            "- [ ] 1. What is to be done @specialist\n- [ ] 2. ... @name (after 1)",
            "- [ ] 1. ... @name",
            "# Title\n\n- [ ] 1. What to do @specialist\n- [ ] 2. What to do next @specialist (after 1)",
        ),
        Meant(None),
    )


@family
def plan_below_simple(d: Drawing) -> Item:
    """A plan beyond doubt below a label that says simple."""
    action = d.pick("", "next_action: create_plan\n", "next_action: direct_answer\n")
    text = (
        f"---\ncomplexity: {d.pick('simple', 'easy', 'low')}\n{action}---\n{d.titled(d.listed())}"
    )
    return d.item("think", text, Meant("plan", d.tasks, ask_is_right=True))


@family
def fence_cut(d: Drawing) -> Item:
    """A plan cut off in the middle of an attribute or a line: what is missing cannot be known."""
    text = d.listed()
    last = d.tasks[-1]
    cut = text[: text.rfind(" (after") + d.pick(8, 9, 7)]
    return (
        d.item("think", d.head() + d.pick("", "```markdown\n") + cut, Meant(None))
        if last.after
        else d.plan(d.head() + text)
    )


@family
def plan_is_no_plan(d: Drawing) -> Item:
    """A label that asks for a plan, and prose: it must be asked for."""
    prose = d.pick(
        d.own.reasons[0], f"{d.own.talk[0]} {d.own.reasons[1]}", "I will look into this.", ""
    )
    return d.item("think", d.head() + prose, Meant(None))


@family
def nothing_at_all(d: Drawing) -> Item:
    """Nothing that could be read."""
    text = d.pick(
        "",
        "  \n",
        "</s>",
        "<|im_end|>",
        "```\n```",
        "---\n---",
        "\u200b",
        "<think>hm</think>",
        "...",
        "null",
    )
    return d.item("think", text, Meant(None))
