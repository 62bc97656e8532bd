"""The checker of a pipeline's package sees each way in which one can break the rules."""

import shutil
from pathlib import Path

import pytest

from cases import cases_of
from replan.testing import check_pipeline

CASES = cases_of(__file__)

PACKAGE = CASES["package"]
ARTICLE = Path(__file__).parents[3] / "examples" / "article"


def written(folder, changes):
    for name, text in {**PACKAGE, **changes}.items():
        path = folder / "tea" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            path.write_text(text)
    return folder / "tea"


def test_the_article_of_the_examples_keeps_the_rules():
    check_pipeline(ARTICLE)


def test_a_package_that_keeps_the_rules_is_not_run_and_passes(tmp_path):
    check_pipeline(written(tmp_path, {"__init__.py": "raise SystemExit\n"}))
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        check_pipeline(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    CASES["rules"],
)  # fmt: skip
def test_each_broken_rule_is_told_with_file_line_and_fix(tmp_path, name, old, new, told):
    changes = {name: PACKAGE[name].replace(old, new)} if old else {}
    if not told:
        changes, told = {"prompts/greeting.md": "Hi."}, "greeting.md:1: it is named after no phase"
    with pytest.raises(AssertionError) as raised:
        check_pipeline(written(tmp_path, changes))
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    CASES["levels"],
)  # fmt: skip
def test_each_broken_level_of_the_article_is_told(tmp_path, name, old, new, told):
    package = tmp_path / "article"
    shutil.copytree(ARTICLE, package, ignore=shutil.ignore_patterns("__pycache__"))
    text = (package / name).read_text("utf-8")
    assert old in text
    (package / name).write_text(text.replace(old, new, 1))
    with pytest.raises(AssertionError) as raised:
        check_pipeline(package)
    assert told in str(raised.value)


@pytest.mark.parametrize("prompt", ["draft_writing", "figure_check"])
def test_a_prompt_that_was_deleted_is_told(tmp_path, prompt):
    package = tmp_path / "article"
    shutil.copytree(ARTICLE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "prompts" / f"{prompt}_system_prompt.md").unlink()
    with pytest.raises(AssertionError) as raised:
        check_pipeline(package)
    assert f"the prompt {prompt}_system_prompt.md is not in the folder" in str(raised.value)
    assert "1 findings" in str(raised.value)


def test_a_prompt_elsewhere_and_a_package_without_an_agent_are_told(tmp_path):
    name = "draft_writing_system_prompt.md"
    for number, place in enumerate((name, f"tea_writing/prompts/{name}")):
        prompts = {f"prompts/{name}": None, place: ""}
        told = r"md:1: it is not in the folder 'prompts' of the package. Move it"
        with pytest.raises(AssertionError, match=told):
            check_pipeline(written(tmp_path / str(number), prompts))
    (tmp_path / "nothing").mkdir()
    with pytest.raises(AssertionError, match="the package has no agent"):
        check_pipeline(tmp_path / "nothing")


def test_a_level_without_handlers_or_with_two_agents_is_told(tmp_path):
    package = written(tmp_path, {"Other/second_agent.py": "x = 1\n"})
    (package / "Other" / "third_agent.py").write_text("x = 1\n")
    with pytest.raises(AssertionError) as raised:
        check_pipeline(package)
    for told in ("not named in snake_case", "agents of two levels"):
        assert told in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    CASES["files"],
)
def test_a_level_has_one_file_of_each_kind_named_after_its_agent(tmp_path, changes, told):
    with pytest.raises(AssertionError) as raised:
        check_pipeline(written(tmp_path, changes))
    assert told in str(raised.value)
