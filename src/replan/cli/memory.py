"""`replan memory`: the facts that teams remember of a user: list, export and forget them."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replan.base.errors import InputError
from replan.cli.shared import options
from replan.cli.shared.process import as_command, confirm_loss, location_from
from replan.cli.user_files.new_file import check_output, write_out
from replan.views.cells import columns, counted, minute, one_line, width_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from replan.state.conversation.facts import Fact, Facts

_NONE = "Nothing is remembered of the user '{user}' here.\n"

TenantOption = Annotated[
    str, typer.Option("--tenant", metavar="NAME", help="The tenant of the user.")
]
memory = typer.Typer(
    help="List, export and forget the facts that teams remember about a user.", no_args_is_help=True
)


@memory.command("list")
@as_command
async def list_(
    *,
    user: options.User = None,
    tenant: TenantOption = "",
    query: Annotated[
        str,
        typer.Option(
            "--query", metavar="WORDS", help="List only the facts that match these words best."
        ),
    ] = "",
    storage: options.Storage = None,
    as_json: options.JsonRows = False,
) -> None:
    """List the facts of a user, the newest first."""
    async with _facts(user, tenant, storage) as facts:
        found, fit = await facts.recall(query) if query else (await facts.all(), True)
        if as_json:
            sys.stdout.write("".join(f"{fact.model_dump_json()}\n" for fact in found))
            return
        if not found:
            sys.stdout.write(_NONE.format(user=one_line(facts.owner.user)))
        if not fit and found:
            sys.stdout.write("No fact has these words. The newest:\n")
        sys.stdout.write("".join(f"{line}\n" for line in _lines(found)))


@memory.command()
@as_command
async def export(
    *,
    output: Annotated[
        Path | None,
        options.output_option("The new file to write; without it, the facts go to a pipe."),
    ] = None,
    user: options.User = None,
    tenant: TenantOption = "",
    storage: options.Storage = None,
) -> None:
    """Write all facts of a user into one JSON file."""
    async with _facts(user, tenant, storage) as facts:
        check_output(output)
        found = await facts.all()
        records = [fact.model_dump(mode="json") for fact in found]
        record = {"user": facts.owner.user, "tenant": facts.owner.tenant, "facts": records}
        text = json.dumps(record, ensure_ascii=False, indent=1) + "\n"
        write_out(output, text, f"wrote {counted(len(found), 'fact')} to")


@memory.command()
@as_command
async def forget(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="FACT...", help="The ids of the facts.")
    ] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Forget all facts of the user.")
    ] = False,
    yes: options.Yes = False,
    user: options.User = None,
    tenant: TenantOption = "",
    storage: options.Storage = None,
) -> None:
    """Forget facts of a user. Runs that used them keep their texts; `replan rm` removes runs."""
    async with _facts(user, tenant, storage) as facts:
        if bool(ids) == everything:
            raise InputError("Name the ids of facts, or give --all. `replan memory list` has them.")
        facts_by_id = {fact.id: fact for fact in await facts.all()}
        wanted = [*facts_by_id] if everything else [*dict.fromkeys(ids or ())]
        if unknown := [one_line(each) for each in wanted if each not in facts_by_id]:
            whose = one_line(facts.owner.user)
            raise InputError(f"The user '{whose}' has no fact {', '.join(unknown)}.")
        lines = _lines([facts_by_id[each] for each in wanted])
        if wanted and not yes and not confirm_loss("fact", lines, "Forget {}?", "Forgotten"):
            typer.echo("Nothing was forgotten.")
            return
        for each in wanted:
            await facts.forget(each)
        typer.echo(f"forgot {counted(len(wanted), 'fact')}")


@asynccontextmanager
async def _facts(user: str | None, tenant: str, storage: str | None) -> AsyncGenerator[Facts]:
    """Open the facts of a user."""
    from replan.cli.user_files.order_signature import user_name
    from replan.cli.user_files.storage_location import open_existing_location
    from replan.state.conversation.facts import facts_of

    async with open_existing_location(location_from(storage)) as kept:
        yield facts_of(kept.store, user_name() if user is None else user, tenant)


def _lines(facts: Sequence[Fact]) -> list[str]:
    rows = [(one_line(fact.id), minute(fact.at), one_line(fact.text)) for fact in facts]
    return columns(rows, width_of(sys.stdout))
