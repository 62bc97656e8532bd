"""`replan run`: do a task, or carry out a plan document."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

import os
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from replan.cli.shared import options
from replan.cli.shared.process import as_command
from replan.cli.shared.site import Site, site_of


class RunCommand(TyperCommand):
    """`replan run`, whose `--approve` may be without a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; a word that names no kind of approval is not the option's value."""
        kinds = get_args(options.Approval)
        pairs = list(zip(args, [*args, ""][1:], strict=True))
        alone = [arg in ("--approve", "-a") and after not in kinds for arg, after in pairs]
        words = [after for (_, after), is_alone in zip(pairs, alone, strict=True) if is_alone]
        args = ["--approve=plan" if it else arg for arg, it in zip(args, alone, strict=True)]
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            # Of two words that could be the task, the one behind the option was meant for it.
            meant = next((word for word in words if word.isalpha()), "")
            if meant and "extra argument" in str(error):
                ctx.fail(f"--approve takes {', '.join(kinds)} or no value, not '{meant}'.")
            raise


@as_command
@options.with_options("site", site_of)
@options.with_options("places", options.Places)
def run(
    context: typer.Context,
    task: Annotated[
        str, typer.Argument(metavar="TASK|PLAN.md", help="A task in words, or a plan document.")
    ],
    *,
    places: options.Places,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            "--file", "-f", help="A text, a picture or a PDF to send with the task; repeatable."
        ),
    ] = None,
    approve: options.Approve = None,
    preview: Annotated[
        bool,
        typer.Option("--preview", help="Print the most that the run can use, without running it."),
    ] = False,
    limit: options.Limit = None,
    label: options.Label = None,
    user: options.User = None,
    site: Site,
) -> int:
    """Plan and do a task, or run a plan document.

    Exit codes: 0 answered or completed, 1 partial, failed or rejected, 2 wrong use,
    3 waiting for an answer, 130 interrupted, 143 terminated.
    """
    from replan.cli.shared.carry_out import carry_out
    from replan.cli.shared.options import read_labels
    from replan.cli.user_files.orders import read_order, read_settings

    order = read_order(
        task,
        model=chosen_model(context, model, places.team),
        base_url=base_url,
        **vars(places),
        files=tuple(file or ()),
        settings=read_settings(limit or [], approve, user),
        **({"labels": read_labels(label)} if label else {}),
    )
    if preview:
        from replan.cli.shared.worst_case import preview_order

        text, code = preview_order(order, os.environ, as_json=site.manner.as_json)
        typer.echo(text, nl=False)
        return code
    return carry_out(order, site)


def chosen_model(context: typer.Context, model: str | None, team: Path | None) -> str | None:
    """The host's model: that of the command line, then the team file's, then the environment's."""
    is_set = context.get_parameter_source("model")
    from_shell = is_set is not None and is_set.name == "ENVIRONMENT"
    return None if team is not None and from_shell else model
