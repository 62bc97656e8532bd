"""Only one room touches what LangGraph and LangChain do not promise."""

import re
from pathlib import Path

import replan

SOURCE = Path(replan.__file__).parent
DOOR = SOURCE / "base" / "langgraph_inside"
PRIVATE = re.compile(
    r"__pregel|branch:to:|var_child_runnable_config|push_message|langgraph\.pregel|langgraph\._"
    r"|\bDeltaChannel\b|__overwrite__|DeltaChannelHistory,"
    r"|serde\.types|_last_v6_timestamp|\.MIGRATIONS\b|checkpoint_migrations|get_subgraphs"
    r"|PregelProtocol|tap_output_aiter|invocation_params|ls_model_name|ls_max_tokens"
    r"|__code__|root_async_client|\.bind_tools is|_arun\b|args_schema = "
)


def test_nobody_else_touches_what_is_private():
    found = {
        f"{file.relative_to(SOURCE)}:{number}: {line.strip()}"
        for file in SOURCE.rglob("*.py")
        if DOOR not in file.parents
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if PRIVATE.search(line) and "replan.base.langgraph_inside" not in line
    }
    assert found == set()


def test_the_search_finds_what_the_door_touches():
    touching = {file.name for file in DOOR.glob("*.py") if PRIVATE.search(file.read_text())}
    assert touching == {file.name for file in DOOR.glob("*.py")} - {"__init__.py"}
