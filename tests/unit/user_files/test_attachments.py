"""Files go with a task as blocks of its message; what models do not take is refused by name."""

import base64
from pathlib import Path

import pytest
from typer.testing import CliRunner

from replan.cli.main import app
from replan.cli.user_files.orders import file_blocks, read_order, restore_order, stored_form
from replan.errors import InputError
from replan.runs.asked.attached import LARGEST, LONGEST_TEXT

PNG = b"\x89PNG\r\n\x1a\n rest"


def test_a_text_a_picture_and_a_pdf_are_blocks_of_the_message(tmp_path):
    (tmp_path / "notes.csv").write_text("\ufeffa,b\n1,2\n", "utf-8")
    (tmp_path / "square.png").write_bytes(PNG)
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7")
    text, picture, paper = file_blocks(
        tmp_path / name for name in ("notes.csv", "square.png", "paper.pdf")
    )
    assert text == {"type": "text", "text": "The file notes.csv:\n\na,b\n1,2\n"}
    assert (picture["type"], picture["mime_type"]) == ("image", "image/png")
    assert base64.b64decode(picture["base64"]) == PNG
    assert (paper["type"], paper["mime_type"]) == ("file", "application/pdf")


@pytest.mark.parametrize(
    ("name", "held", "why"),
    [
        ("sound.mp3", b"\xff\xfb\x90", "is not one of UTF-8 text, PNG"),
        ("nul.txt", b"a\x00b", "has a NUL"),
        ("long.txt", b"a" * (LONGEST_TEXT + 1), "more than 200,000 characters"),
        ("huge.txt", b"a" * (4 * LONGEST_TEXT + 1), "more than 800,000 bytes"),
        ("huge.png", b"a" * (LARGEST + 1), "more than 10,000,000 bytes"),
    ],
)
def test_what_models_do_not_take_is_refused_with_what_to_do(tmp_path, name, held, why):
    (tmp_path / name).write_bytes(held)
    with pytest.raises(InputError, match=rf"--file .*{name}.*{why}"):
        file_blocks([tmp_path / name])


@pytest.mark.parametrize("name", ["missing.txt", "."])
def test_what_is_no_file_is_refused_before_anything_begins(tmp_path, name):
    typed = [
        "run",
        "Describe it.",
        "--file",
        str(tmp_path / name),
        "--storage",
        str(tmp_path / "r"),
    ]
    done = CliRunner().invoke(app, typed)
    assert (done.exit_code, "cannot be read" in done.output) == (2, True)
    assert not (tmp_path / "r").exists()


def test_files_of_an_order_are_found_from_everywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("hello")
    again = restore_order(stored_form(read_order("Read it.", files=(Path("a.txt"),))), "run")
    monkeypatch.chdir("/")
    assert again.input["messages"][0].text == "Read it.The file a.txt:\n\nhello"
