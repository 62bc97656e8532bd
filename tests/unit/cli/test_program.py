"""The program around its commands: help, short options, completion."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from typer.testing import CliRunner

import warm
from replan.cli.main import app
from replan.cli.shared.process import EXTRAS, needs_extra
from replan.errors import UsageError


def test_h_is_help_everywhere():
    groups = {each.name: each.typer_instance for each in app.registered_groups}
    commands = [("", app), *((f"{name} ", group) for name, group in groups.items())]
    named = [
        f"{before}{each.name or each.callback.__name__}"
        for before, group in commands
        for each in group.registered_commands
    ]
    for command in ["", *groups, *named]:
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


def test_a_name_that_needs_an_extra_says_what_to_install():
    code = "import sys; sys.modules['fastapi'] = None; from replan import open_server"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    told = "open_server needs the extra 'server': fastapi is not installed. Install it: pip install"
    assert done.stderr.splitlines()[-1] == f"ModuleNotFoundError: {told} 'replan[server]'"


def test_all_names_can_be_imported_but_those_that_need_an_extra():
    lines = (
        "import sys; sys.modules['fastapi'] = None",
        "from replan import *",
        "print(run_sync.__name__, Team.__name__, 'open_server' in globals())",
        "import replan; print('open_server' in dir(replan)); replan.open_server",
    )
    code = "\n".join(lines)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["run_sync", "Team", "False", "True"], done.stderr
    assert "open_server needs the extra 'server'" in done.stderr.splitlines()[-1]


def test_a_command_without_its_extra_says_what_to_install():
    told = r"serve needs the extra 'server': uvicorn is .*: pip install 'replan\[server\]'"
    with pytest.raises(UsageError, match=told), needs_extra("serve", "server"):
        raise ImportError(name="uvicorn.config")
    with pytest.raises(ImportError, match="a mistake"), needs_extra("serve", "server"):
        raise ImportError("a mistake of our own", name="replan.server")
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))
    by_name = dict[str, set[str]]()
    for package, names in packages_distributions().items():
        for name in names:
            by_name.setdefault(name.lower().replace("_", "-"), set()).add(package)
    for extra, packages in EXTRAS.items():
        for each in project["project"]["optional-dependencies"][extra]:
            wanted = by_name[re.match(r"[\w-]+", each)[0]]
            assert wanted & {*packages}, (extra, each, wanted)


@pytest.mark.parametrize("word", ["answer", "status", "logs", "cancel", "compare", "web"])
def test_a_word_of_another_program_leads_to_the_command_that_is_meant(word):
    done = CliRunner().invoke(app, [word, "last"])
    assert done.exit_code == 2
    named = " ".join(done.stderr.replace("│", " ").split())
    meant = named.partition("This does it: replan ")[2].split()[0]
    assert CliRunner().invoke(app, [meant, "--help"]).exit_code == 0
