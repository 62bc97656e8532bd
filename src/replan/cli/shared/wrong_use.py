"""What the parser of the command line refuses, in words that say what to type instead."""

import re
from collections.abc import Mapping
from typing import Any

from replan.base.declared.part import did_you_mean

_MEANT: Mapping[str, str] = {
    "--limit": "--set",
    "--max-cost": "--set",
    "--budget": "--set",
    "--config": "--team",
    "--file-team": "--team",
    "--db": "--storage",
    "--database": "--storage",
    "--format": "--json",
    "--output": "--out",
}
"""What people type who know other programs, and the option that does it here, if there is one."""

_WORDS = (
    (r"Input should be a valid integer.*", "this is not a whole number. Write one, such as 2."),
    (r"Input should be a valid number.*", "this is not a number. Write one, such as 2.5."),
    (r"Input should be greater than or equal to (\S+)", r"this is too small. Write \1 or more."),
    (r"Input should be less than or equal to (\S+)", r"this is too large. Write \1 or less."),
    (
        r"file ('\w[\w.]*:\w+') does not exist\.",
        r"there is no \1. Name a team file, in which run: MODULE:FUNCTION names a function.",
    ),
    (r"(?:file|dir|path) ('.*') does not exist\.", r"there is no \1. Check the path."),
    (r"dir ('.*') is a file\.", r"\1 is a file. Name a folder."),
    (r"file ('.*') is a directory\.", r"\1 is a folder. Name a file."),
    (r"(Got unexpected extra argument.*)", r"\1. Put a text of several words in quotes."),
)
_BARE_COMMAND = re.compile(r"No such command '.*'\.", re.DOTALL)
_EXTRA_FILE = re.compile(r"Got unexpected .*\((?P<file>\S+\.(?P<kind>yaml|yml|md))\)")
_NO_CHOICE = re.compile(r"Value error, '(?P<given>.*)' is not one of (?P<known>'.*')\.", re.DOTALL)


def explain(error: Any) -> None:
    """Change the message of an error of the parser, so that it says what to type."""
    match type(error).__name__:
        case "MissingParameter":
            error.message = getattr(error.param, "help", None) or error.message
        case "NoSuchOption":
            _explain_option(error)
        case "BadOptionUsage":
            error.message += f" Write it behind the option: {error.option_name} VALUE"
        case _:
            error.message = _extra_file(error) or _in_words(error.message)
            context = error.ctx
            is_bare = _BARE_COMMAND.fullmatch(error.message)
            if is_bare and context is not None:
                command_names = ", ".join(context.command.list_commands(context))
                error.message += f" The commands are: {command_names}."


def _extra_file(error: Any) -> str:
    """What to type where a file is in the place of the option that takes it."""
    found = _EXTRA_FILE.fullmatch(error.message)
    option = found and ("--team" if found["kind"] != "md" else "--plan")
    if not found or option not in _options(error):
        return ""
    return f"{error.message}. Write it behind its option: {option} {found['file']}"


def _in_words(message: str) -> str:
    if found := _NO_CHOICE.fullmatch(message):
        choices = re.findall(r"'([^']*)'", found["known"])
        fix = did_you_mean(found["given"], choices, f"Write one of: {', '.join(choices)}.")
        return f"'{found['given']}' is not one of the choices. {fix}"
    for pattern, words in _WORDS:
        if re.fullmatch(pattern, message, re.DOTALL):
            return re.sub(pattern, words, message, flags=re.DOTALL)
    return message


def _options(error: Any) -> list[str]:
    """The options of the command that is called, where the parser says which one that is."""
    params = error.ctx.command.params if error.ctx is not None else ()
    return [name for parameter in params for name in parameter.opts if name.startswith("--")]


def _arguments(error: Any) -> list[str]:
    params = error.ctx.command.params if error.ctx is not None else ()
    return [parameter.name for parameter in params if parameter.param_type_name == "argument"]


def _explain_option(error: Any) -> None:
    option_names = _options(error)
    intended_option = _MEANT.get(error.option_name)
    if intended_option in option_names:
        error.message = f"{error.message}. Did you mean {intended_option}?"
        error.possibilities = None
    elif error.option_name in ("--team", "-t") and "teams" in _arguments(error):
        error.message += ". Write the file without it: TEAM.yaml."
        error.possibilities = None
    elif option_names and not error.possibilities:
        error.message = f"{error.message}. The options are: {', '.join(option_names)}."
