"""Standard output and error whose failures cannot be confused with other errors.

click and rich turn a closed pipe into exit code 1, which means "has gaps" here, and a full disk
into a traceback. Both catch OSError; the streams of this module raise errors of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class OutputError(Exception):
    """The output could not be written; the text is the system's reason."""


class OutputClosedError(OutputError):
    """The reader of our output closed the pipe, as `head` does."""


class _Guarded:
    """A text stream whose failures are distinct from those of files and sockets.

    After a failure every call fails: click probes a stream and ignores the error.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._failure: OutputError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write as the stream does; what its encoding lacks is written as an escape, on any terminal."""
        with self._translate_errors():
            try:
                return self._stream.write(text)
            except UnicodeEncodeError as exc:
                escaped = text.encode(exc.encoding, "backslashreplace")
                return self._stream.write(escaped.decode(exc.encoding))

    def flush(self) -> None:
        """Flush as the stream does."""
        with self._translate_errors():
            self._stream.flush()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
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
        """Discard what is still buffered: the interpreter flushes the stream once more at exit."""
        try:
            number = self._stream.fileno()
        except (OSError, ValueError):
            return  # not a file, as in tests
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Let stdout and stderr raise OutputError; on exit they are flushed and restored."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _guard(sys.stdout), _guard(sys.stderr)
    try:
        yield
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    finally:
        sys.stdout, sys.stderr = before


def _guard(stream: TextIO | None) -> Any:
    # A stream that the caller closed (`>&-`) is None, and click and rich know that.
    return None if stream is None else _Guarded(stream)
