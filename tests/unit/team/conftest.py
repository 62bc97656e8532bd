"""Team files that tests write, and modules beside them that are forgotten afterwards."""

import sys

import pytest

from replan.errors import TeamFileError
from replan.team.team_file import read_team_file

MINIMAL = """\
host:
  model: offline
specialists:
  - name: clerk
    intended_use: Everything.
    chat_model: offline
"""


@pytest.fixture
def minimal():
    return MINIMAL


@pytest.fixture
def write(tmp_path):
    """Write `team.yaml`, or another file beside it."""

    def write_file(text, name="team.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file


@pytest.fixture
def read(write):
    """Read a team file with this text."""

    def read_text(text, environment=None, **options):
        return read_team_file(write(text), environment or {}, **options)

    return read_text


@pytest.fixture
def mistakes(read):
    """The mistakes of a team file with this text."""

    def mistakes_of(text):
        with pytest.raises(TeamFileError) as caught:
            read(text)
        return caught.value.mistakes

    return mistakes_of


@pytest.fixture
def module(write):
    """Write a module beside the team file; give its name."""
    written = []

    def write_module(name, text):
        write(text, f"{name}.py")
        written.append(name)
        return name

    yield write_module
    for name in written:
        sys.modules.pop(name, None)
