"""How a specialist can work, and the fields that go with each way."""

_PROCESSORS = ("input_processor", "output_processor")

WAYS: dict[str, tuple[str, ...]] = {
    "chat_model": ("system_prompt", "tools", "max_tool_rounds", "approve", *_PROCESSORS),
    "invokable": ("streamable", "system_prompt", *_PROCESSORS),
    "streamable": ("invokable", "system_prompt", *_PROCESSORS),
    "run": (),
}
"""The fields that each way to work uses, of those that not all of them use."""

FIELDS_OF_WAYS = frozenset(name for used in WAYS.values() for name in used) - WAYS.keys()
"""The fields that only some ways use; beside another way they would be left out in silence."""
