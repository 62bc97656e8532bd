"""Log records whose tracebacks tell no secret, whoever writes them down."""

import logging

from replan.secrets.masking import without_secrets

_WRITER = logging.Formatter()


def with_masked_traceback(record: logging.LogRecord) -> bool:
    """Write the traceback of a record without secrets: a filter that lets every record through."""
    if record.exc_info and not record.exc_text:
        record.exc_text = without_secrets(_WRITER.formatException(record.exc_info))
    return True
