"""The options of how a run is told, of all commands that follow one."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

import os
import sys
from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any

from replan.cli.shared import options
from replan.cli.shared.process import place

if TYPE_CHECKING:
    from replan.cli.shared.site import Site

Command = Callable[..., int]


def site(
    *,
    grace: options.Grace = 10.0,
    storage: options.Storage = None,
    as_json: options.JsonLines = False,
    plain: options.Plain = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    log_file: options.LogFile = None,
) -> "Site":
    """Where and how this process tells a run."""
    from replan.cli.shared.site import Site
    from replan.views.live.manner import Manner

    return Site(
        environment=os.environ,
        input=sys.stdin,
        output=sys.stdout,
        errors=sys.stderr,
        place=place(storage),
        manner=Manner(as_json=as_json, plain=plain, quiet=quiet, verbose=verbose),
        log_file=log_file,
        grace=grace,
    )


def with_site(*left_out: str) -> Callable[[Command], Command]:
    """Give a command the options of `site`, and the site that they make as `site`.

    Args:
        left_out: Options that the command does not have.
    """
    shared = [each for each in signature(site).parameters.values() if each.name not in left_out]

    def given_to(command: Command) -> Command:
        own = [each for each in signature(command).parameters.values() if each.name != "site"]

        @wraps(command)
        def called(**given: Any) -> int:
            chosen = {each.name: given.pop(each.name) for each in shared}
            return command(**given, site=site(**chosen))

        # Typer reads the options of a command from both.
        called.__dict__["__signature__"] = Signature([*own, *shared])
        called.__annotations__ = {each.name: each.annotation for each in (*own, *shared)}
        return called

    return given_to
