"""Values of checkpoints, compressed: they repeat the names of their fields in each row.

What is encrypted is not compressed: its length would tell how much of a text is in it twice. The
log is not, either: it can be read as it is.
"""

import zlib

from replan.storage.faults import UnreadableRecordError

LEAST = 256
"""Bytes of a value below which hardly anything would be saved."""

_FAST = 1  # the level: a higher one takes more time and saves 2 %
_MOST = 2**28  # bytes of a value, so that a few bytes in the database cannot take all memory


def pack(data: bytes) -> bytes:
    """Compress data."""
    return zlib.compress(data, _FAST)


def unpack(data: bytes) -> bytes:
    """The data of which `pack` made this.

    Raises:
        UnreadableRecordError: It is damaged, or too long.
    """
    stream = zlib.decompressobj()
    try:
        whole = stream.decompress(data, _MOST)
    except zlib.error as error:
        raise UnreadableRecordError(str(error)) from error
    if not stream.eof:
        raise UnreadableRecordError("a compressed value is cut off, or too long")
    return whole
