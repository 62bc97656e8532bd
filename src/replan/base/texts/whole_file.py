"""Write a file so that whoever reads meanwhile sees the old one or the new one, each whole."""

import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Put a whole new file in place of an old one, or raise and leave the old one as it is.

    A link in its place is replaced, not followed.
    """
    # Opened like any file, so that the umask says who may read it.
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            beside.chmod(path.stat().st_mode)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
