"""The program around its commands: help, short options, completion."""

import pytest
from typer.testing import CliRunner

import warm
from replan.cli.main import app

COMMANDS = [
    "run",
    "resume",
    "runs",
    "show",
    "retry",
    "skip",
    "rm",
    "check",
    "graph",
    "init",
    "schema",
    "completion",
    "memory",
    "memory list",
    "memory export",
    "memory forget",
]


def test_h_is_help_everywhere():
    for command in ["", *COMMANDS]:
        arguments = command.split()
        short, long = (CliRunner().invoke(app, [*arguments, each]) for each in ("-h", "--help"))
        assert (short.exit_code, short.stdout) == (0, long.stdout), command


def test_each_command_has_a_file_of_its_name():
    for command in app.registered_commands:
        assert command.callback.__module__ == f"replan.cli.{command.callback.__name__}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(shell):
    script = warm.run("-m", "replan", "completion", shell)
    assert script.returncode == 0
    assert f"_REPLAN_COMPLETE=complete_{shell}" in script.stdout


def test_a_shell_completes_commands_and_options():
    def completed(*words):
        asked = {"_REPLAN_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(("replan", *words))}
        asked["COMP_CWORD"] = str(len(words))
        return warm.run("-m", "replan", env=asked).stdout.split()

    assert completed("ru") == ["run", "runs"]
    assert completed("run", "--pl") == ["--plan-out", "--plain"]
    assert completed("run", "--approve", "al") == ["always"]
