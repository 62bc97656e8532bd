"""Read a job file: a job spec in YAML, with the fields that it has in Python."""

from functools import partial
from pathlib import Path
from typing import Any

from replan.base.declared.mistakes import mistake_at
from replan.base.declared.part import Surroundings
from replan.base.declared.yaml_source import file_schema, folder_of, read_part, read_text, read_yaml
from replan.base.errors import JobFileError
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
    source = read_yaml(read_text(path, JobFileError, "Check the path."))
    content: Any = source.value
    if not isinstance(content, dict) or not content:
        fix = "Begin with fields such as name:, slots: and commands:."
        none = mistake_at((), None, "A job file must have fields.", fix, "empty", source)
        raise JobFileError(path, source.mistakes or [none])
    around = Surroundings(folder=folder_of(path), imports=imports)
    return read_part(source, JobSpec, around, partial(JobFileError, path))
