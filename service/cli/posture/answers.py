"""Posture as a document, from the HTTP API; `observing.py` makes the same of a cluster that is read at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.cli.server.report import is_complete, read_gaps
from service.cli.server.server_options import client_of
from service.terminal.parts import Row


def from_server(options: Mapping[str, Any], query: Mapping[str, str]) -> Row:
    """Return what a running Tidemark says; the query is that of `/posture`."""
    with client_of(options) as api:
        pages = list(api.pages("posture", **query))
        status = api.get("status")
        return {
            "server": api.server,
            "as_of": pages[-1]["as_of"],
            "is_current": pages[-1]["is_current"],
            "complete": pages[-1]["is_current"] and is_complete(status),
            "gaps": read_gaps(api, status),
            "checks": pages[0]["checks"],
            "lines": [row for page in pages for row in page["items"]],
        }
