"""A team file takes prompts and functions from its own folder and from installed packages only."""

import sys

import pytest

from cases import cases_of
from replan.errors import TeamFileError

CASES = cases_of(__file__)

HEAD = "host: {model: offline}\nspecialists:\n"


def running(reference):
    return f"{HEAD}  - {{name: a, intended_use: A., run: '{reference}'}}\n"


def prompting(file):
    return f"host: {{model: offline, system_prompt: {file}}}\n" + running("os:getcwd").removeprefix(
        HEAD.partition("\n")[0] + "\n"
    )


def test_functions_come_from_installed_packages_and_packages_beside_the_file(read, module, write):
    write("", "beside_pkg/__init__.py")
    module("beside_pkg/inner", "from beside_pkg.other import work\n")
    module("beside_pkg/other", "def work(context): return 'x'\n")

    assert read(running("beside_pkg.inner:work")).config.specialists[0].run(None) == "x"
    assert read(running("json:dumps")).config.specialists[0].run.__name__ == "dumps"


def test_the_search_path_is_as_it_was_before(read, module):
    before = list(sys.path)
    work = "def work(context): return ''\n"
    module("path_keeper", work)
    module("path_mender", f"import sys\ndel sys.path[0]\n{work}")

    read(running("path_keeper:work"))
    read(running("path_mender:work"))

    assert sys.path == before


@pytest.mark.parametrize(
    ("reference", "code", "words"),
    CASES["imports"],
)
def test_what_cannot_be_imported_is_told_with_the_reason(mistakes, module, reference, code, words):
    module("team_work", "def work(context): return ''\n")
    module("team_raises", "1 / 0\n")
    module("team_exits", "raise SystemExit(3)\n")
    module("team_needs", "import a_package_that_is_not_there\n")
    module("team_syntax", "def\n")
    module("team_lazy", "def __getattr__(name): raise RuntimeError('not today')\n")
    (mistake,) = mistakes(running(reference))

    assert mistake.code == code
    assert mistake.field == "specialists[0].run"
    assert words in str(mistake)


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("def works(context): return ''\n", False),
        ("# here is no work\n", True),  # a comment may be what makes it
        ("from elsewhere import work\n", True),
        ("from elsewhere import *\n", True),
        ("globals().update(made())\n", True),
        ("def __getattr__(name): return name\n", True),
        ("def\n", False),
    ],
)
def test_a_name_that_a_module_does_not_contain_is_found_missing_without_an_import(
    read, module, source, is_found
):
    module("seen_only", source)
    if is_found:
        read(running("seen_only:work"), imports=False)
        return
    with pytest.raises(TeamFileError, match="the module 'seen_only' has no 'work'"):
        read(running("seen_only:work"), imports=False)
    assert "seen_only" not in sys.modules


def test_a_module_whose_name_is_taken_is_an_error_and_not_another_module(mistakes, module):
    module("working_elsewhere", "")
    sys.modules["working_elsewhere"] = pytest

    (mistake,) = mistakes(running("working_elsewhere:raises"))

    assert mistake.code == "module_hidden"
    assert "working_elsewhere.py" in mistake.fix


@pytest.mark.parametrize(
    ("file", "code"),
    CASES["prompts"],
)
def test_a_prompt_file_that_cannot_be_used_is_told(mistakes, write, tmp_path, file, code):
    secret = tmp_path.parent / "secret.md"
    secret.write_text("swordfish")
    (tmp_path / "link.md").symlink_to(secret)
    (tmp_path / "linked").symlink_to(tmp_path.parent)
    (tmp_path / "loop.md").symlink_to(tmp_path / "loop.md")
    write("ok", "ok.md")
    write(" \n", "empty.md")
    write(b"\xff", "latin.md")
    write("x" * 600_000, "large.md")
    (mistake,) = mistakes(prompting(file))

    assert mistake.field == "host.system_prompt"
    assert code in (None, mistake.code)
    assert "swordfish" not in str(mistake)


def test_a_link_inside_the_folder_is_followed(read, write, tmp_path):
    write("Hello.\n", "data/prompt.md")
    (tmp_path / "prompt.md").symlink_to(tmp_path / "data" / "prompt.md")

    assert read(prompting("{file: prompt.md}")).config.host.system_prompt == "Hello."
