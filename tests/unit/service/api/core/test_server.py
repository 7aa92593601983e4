"""How many connections the HTTP server keeps."""

from __future__ import annotations

import resource

import pytest

from service.api.core import edge, rights
from service.api.core.server import connection_limit


@pytest.mark.parametrize("requests", [1, 64, 10_000])
def test_more_connections_are_kept_than_can_be_busy(
    requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda _: unlimited)
    others = edge.SCRAPES_AT_ONCE + edge.INGESTS_AT_ONCE + rights.MAX_STRANGERS
    assert connection_limit(requests) > requests + others


def test_connections_leave_files_to_the_rest_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    assert connection_limit(10_000) == 512
