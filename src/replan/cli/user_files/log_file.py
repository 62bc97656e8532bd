"""Write the log of a run into a file: one line of text for each record, without secrets."""

import copy
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from replan.base.errors import InputError
from replan.base.secrets.masking import without_secrets
from replan.base.texts.signs import harmless

_OWN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@contextmanager
def off_the_screen() -> Generator[None]:
    """Keep logs and warnings of libraries off the screen; a log file still receives them."""
    if logging.lastResort is not None:
        # Threads of libraries complain when nothing here listens any more.
        logging.lastResort.setFormatter(_Masked())
    root, nowhere = logging.getLogger(), logging.NullHandler()
    root.addHandler(nowhere)
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.removeHandler(nowhere)


@contextmanager
def logging_to(path: Path | None) -> Generator[None]:
    """Append the logs of `replan`, from DEBUG on, and the warnings of others to a file, if any."""
    if path is None:
        yield
        return
    try:
        # What a run says is in it.
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
        handler = logging.FileHandler(path, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"The log file '{path}' cannot be opened: {error.strerror}.") from error
    others = logging.StreamHandler(handler.stream)
    others.addFilter(lambda record: record.name.partition(".")[0] != "replan")
    for log_handler in (handler, others):
        log_handler.setFormatter(LineFormatter())
    logger, root = logging.getLogger("replan"), logging.getLogger()
    level = logger.level
    logger.addHandler(handler)
    # The root's own level lets through what others say from WARNING on.
    root.addHandler(others)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.setLevel(level)
        root.removeHandler(others)
        logger.removeHandler(handler)
        handler.close()


class _Masked(logging.Formatter):
    """Writes a record without secrets, and nothing that steers a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return harmless(without_secrets(super().format(record)))


class LineFormatter(logging.Formatter):
    """Time, level, logger, message, and the record's own fields as `name=value`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Write a record; a traceback is in indented lines below it."""
        whole = copy.copy(record)
        # What somebody else wrote of the traceback is not indented.
        whole.exc_text = None
        return without_secrets(super().format(whole))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Write the record's line."""
        fields = (
            f" {name}={str(value)!r}" if " " in str(value) else f" {name}={value}"
            for name, value in vars(record).items()
            if name not in _OWN_FIELDS
        )
        return harmless(" ".join((super().formatMessage(record) + "".join(fields)).split("\n")))

    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's name
        """Write a traceback, indented."""
        lines = super().formatException(ei).splitlines()  # type: ignore[arg-type]
        return harmless("\n".join(f"    {line}" for line in lines))
