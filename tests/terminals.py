"""Programs as people start them: on a terminal, or with pipes; waiting for what can be seen."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

import warm
from warm import PATIENCE

REPLAN = ("-m", "replan")
COLUMNS, LINES = 60, 20
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Program:
    """A program whose output is read as it comes; reading waits for what can be seen."""

    def __init__(self, command, environment, output, *, reads):
        self._reads = reads
        self.process = warm.Process(
            command,
            stdin=output if os.isatty(output) else None,
            stdout=output,
            stderr=output,
            env=environment,
        )
        os.close(output)
        self._raw = b""

    @property
    def text(self):
        """All that was written so far, without colours and movements."""
        return CONTROL.sub("", self._raw.decode(errors="replace")).replace("\r", "")

    @property
    def raw(self):
        return self._raw.decode(errors="replace")

    def wait_for(self, text, times=1):
        while self.text.count(text) < times:
            assert self._read(), f"{text!r} never came:\n{self.text}"

    def wait_until(self, is_so):
        """Read until something is so that is seen elsewhere."""
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < deadline, f"it never was so:\n{self.text}"
            # Who is not read from does not go on.
            if select.select([self._reads], [], [], 0.02)[0]:
                self._read()

    def end(self):
        """Read until the program ends, and give its exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    def kill(self):
        """End it at once, as a power cut would."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def close(self):
        self.kill()
        os.close(self._reads)

    def _read(self):
        ready, _, _ = select.select([self._reads], [], [], PATIENCE)
        assert ready, f"nothing came any more:\n{self.text}"
        try:
            found = os.read(self._reads, 65536)
        except OSError:  # Linux says so when the other side is closed
            return False
        self._raw += found
        return bool(found)


class Terminal(Program):
    """A program on a terminal of its own."""

    def __init__(self, command, environment):
        main, replica = pty.openpty()
        fcntl.ioctl(replica, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        super().__init__(command, environment, replica, reads=main)

    def type(self, text):
        """Type at the keyboard of this terminal."""
        os.write(self._reads, text.encode())


class Pipe(Program):
    """A program in a script: nobody can be asked."""

    def __init__(self, command, environment):
        reads, writes = os.pipe()
        super().__init__(command, environment, writes, reads=reads)
