"""The log of an application: the errors that librdkafka writes into it, line by line.

Nothing of it reaches the terminal: there the lines would be taken for errors of the sandbox. A client hands
its lines over while it is polled. Source: librdkafka's `log_level`, by syslog's numbers; confluent-kafka's
`logger`.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Final

ERRORS: Final = 3  # syslog: errors and what is worse; below them are lost connections
FORM: Final = "%(asctime)s.%(msecs)03dZ %(levelname)s [%(name)s] %(message)s"
TIME_FORM: Final = "%Y-%m-%dT%H:%M:%S"  # UTC


class ClientLog:
    """Keeps what one client logs, as an application's log file would have it."""

    def __init__(self, whose: str) -> None:
        """`whose` is what every line begins with, as applications log which instance speaks."""
        self._handler = _Lines()
        # Not one of the process-wide registry: it ends with its client.
        self._logger = logging.Logger(whose, logging.WARNING)  # noqa: LOG001 - as said above
        self._logger.addHandler(self._handler)

    def settings(self) -> dict[str, Any]:
        """Return what lets a client of confluent-kafka log here."""
        return {"logger": self._logger, "log_level": ERRORS}

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines so far."""
        return tuple(self._handler.lines)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        form = logging.Formatter(FORM, TIME_FORM)
        form.converter = time.gmtime
        self.setFormatter(form)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(self.format(record))
