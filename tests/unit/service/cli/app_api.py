"""Asks the application in this process, as a command asks a service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.testclient import TestClient

from rules.catalogue.all_rules import RULES
from rules.errors import RequestError
from rules.judgement import Judgement
from rules.view import View
from tests.factories import snapshot
from tests.unit.rules.catalogue.judging import view_of


@dataclass
class AppApi:
    """An `Api` without a network."""

    client: TestClient
    server: str = "http://localhost:8780"

    def find(self, path: str, **query: str | int) -> Mapping[str, Any] | None:
        answer = self.client.get(f"/api/v1/{path}", params=query)
        if answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY:
            raise RequestError(answer.text)
        assert answer.status_code in (200, 404), answer.text
        return answer.json() if answer.status_code == 200 else None

    def get(self, path: str, **query: str | int) -> Mapping[str, Any]:
        found = self.find(path, **query)
        assert found is not None
        return found

    def pages(self, path: str, **query: str | int) -> Iterator[Mapping[str, Any]]:
        yield self.get(path, **{"limit": 1000, **query})


def judgements(view: View | None = None) -> tuple[Judgement, ...]:
    """Return what all rules say of an observation that sees everything."""
    seen = view or view_of([snapshot()])
    return tuple(rule.judge(seen) for rule in RULES)
