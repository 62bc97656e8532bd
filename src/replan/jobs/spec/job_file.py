"""Read a job file: a job spec in YAML, with the fields that it has in Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from replan.declared.files import text_of
from replan.declared.keys import FIX, keys_in
from replan.declared.mistakes import Found, found_in
from replan.declared.placing import in_order, placed
from replan.declared.schema import file_schema
from replan.declared.surroundings import Surroundings, folder_of
from replan.declared.yaml_source import read_yaml
from replan.errors import JobFileError
from replan.jobs.spec.job_spec import JobSpec


def job_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) that job files keep."""
    return {**file_schema(JobSpec), "title": "Replan job"}


def read_job_file(path: Path, *, imports: bool = True) -> JobSpec:
    """Read a job file.

    Args:
        path: The file. Functions that it names are imported, from installed packages or from the
            folder of the file.
        imports: False does not import the functions: the spec can be inspected, but not used.

    Raises:
        JobFileError: The file has mistakes; the error lists all of them with their fixes.
    """
    source = read_yaml(text_of(path, JobFileError, "Check the path."))
    content: Any = source.value
    if not isinstance(content, dict) or not content:
        fix = "Begin with fields such as name:, slots: and commands:."
        none = Found((), "empty", "A job file must have fields.", fix)
        raise JobFileError(path, source.mistakes or [placed(none, source)])
    found = [
        Found(where, "literal_secret", "This looks like a key.", FIX, source.at(where))
        for where in keys_in(content)
    ]
    spec = None
    around = Surroundings(folder=folder_of(path), imports=imports)
    try:
        fields = cast("Mapping[str, Any]", content)
        spec = JobSpec.model_validate(fields, strict=True, context=around)
    except ValidationError as error:
        found += found_in(error, JobSpec)
    mistakes = in_order([*source.mistakes, *(placed(each, source) for each in found)])
    if spec is None or mistakes:
        raise JobFileError(path, mistakes)
    return spec
