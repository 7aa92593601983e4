"""Standard output and error whose failures cannot be mistaken for anything else.

click and rich turn a closed pipe into exit code 1, which means "has gaps" here, and a full disk
into a traceback. Both search for an OSError; the streams made here raise errors of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class OutputError(Exception):
    """What we had to say could not be written; its text is the system's reason."""


class OutputClosedError(OutputError):
    """Whoever read our output went away, as `head` does when it has enough."""


class _Guarded:
    """A text stream that tells its own failures from those of files and sockets.

    Once it failed it fails for good: click tries a stream out and ignores what comes of that.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._failure: OutputError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write as the stream does."""
        with self._translated():
            return self._stream.write(text)

    def flush(self) -> None:
        """Flush as the stream does."""
        with self._translated():
            self._stream.flush()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except OSError as exc:
            self._abandon()
            kind = OutputClosedError if isinstance(exc, BrokenPipeError) else OutputError
            self._failure = kind((exc.strerror or str(exc)).lower())
            raise self._failure from exc

    def _abandon(self) -> None:
        """Let what is still buffered go nowhere: the interpreter flushes it once more at its end."""
        try:
            number = self._stream.fileno()
        except (OSError, ValueError):
            return  # not a file, as in tests
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Let stdout and stderr raise OutputError; on leaving they are as before, and flushed."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _guarded(sys.stdout), _guarded(sys.stderr)
    try:
        yield
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    finally:
        sys.stdout, sys.stderr = before


def _guarded(stream: TextIO | None) -> Any:
    # A stream that the caller closed (`>&-`) is None, and click and rich know that.
    return None if stream is None else _Guarded(stream)
