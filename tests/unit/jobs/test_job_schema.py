"""The schema of job files for editors says what the reader says."""

import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from cases import cases_of
from replan.errors import JobFileError
from replan.jobs.spec.job_file import job_schema, read_job_file
from replan.jobs.spec.slot import Slot

CASES = cases_of(__file__)

EXAMPLES = Path(__file__).parents[3] / "examples"
TEA = """\
name: tea
slots: [{name: kind, question: {en: Your tea, zh: 什么茶}, choices: {green: [绿], black: }}]
commands: [{name: brew, needs: [kind], action: ask_user, parameters: {question: Hot}}]
languages: [en, zh]
"""
WRONG = CASES["wrong"]


def test_the_schema_takes_what_the_reader_takes_and_refuses_what_it_refuses(tmp_path):
    Draft202012Validator.check_schema(job_schema())
    validator, path = Draft202012Validator(job_schema()), tmp_path / "job.yaml"
    files = [EXAMPLES / "jobs/travel.yaml", EXAMPLES / "product_listings/listings.yaml", path]
    path.write_text(TEA, "utf-8")
    for each in files:
        read_job_file(each)
        assert list(validator.iter_errors(yaml.safe_load(each.read_text("utf-8")))) == [], each
    for text, field in WRONG.items():
        content = yaml.safe_load(TEA) | yaml.safe_load(text)
        path.write_text(yaml.safe_dump(content, allow_unicode=True), "utf-8")
        with pytest.raises(JobFileError) as error:
            read_job_file(path)
        assert field in [each.field for each in error.value.mistakes], text
        (wrong, *_) = validator.iter_errors(content)
        assert wrong.absolute_path[0] == field.partition("[")[0], text


def test_every_field_of_a_slot_is_in_the_guide():
    guide = (Path(__file__).parents[3] / "docs/jobs.md").read_text("utf-8")
    words = {*re.findall(r"`(\w+)`", guide), *re.findall(r"(?m)^ +(?:- )?(\w+):", guide)}
    assert Slot.model_fields.keys() - words == set()
