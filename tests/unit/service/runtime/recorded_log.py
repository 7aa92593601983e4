"""A log whose events a test can read."""

from __future__ import annotations

import io
import json
from typing import Any

from service.runtime.events import Event
from service.runtime.log import LineWriter, Log, make_log


class RecordedLog:
    """What was logged, line by line."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.log: Log = make_log(LineWriter(self._stream), as_json=True, level="debug")

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return all events in order."""
        return [json.loads(line) for line in self._stream.getvalue().splitlines()]

    @property
    def names(self) -> list[str]:
        """Return the names of the events in order."""
        return [event["event"] for event in self.events]

    def of(self, name: Event) -> list[dict[str, Any]]:
        """Return the events of one name without level and time."""
        return [
            {key: value for key, value in event.items() if key not in ("time", "event")}
            for event in self.events
            if event["event"] == name
        ]
