"""Files that steps leave."""

from replan.base.values import Value


class Artifact(Value):
    """A file that a step left in the workspace.

    Attributes:
        path: The file, relative to the workspace.
        title: What it is, for people.
        media_type: For example `text/markdown`.
    """

    path: str
    title: str = ""
    media_type: str = "application/octet-stream"
