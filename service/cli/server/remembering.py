"""A client that fetches each document once, for a screen whose lists need some of them several times."""

from __future__ import annotations

from collections.abc import Iterator

from service.cli.server.report import Api
from service.terminal.parts import Row

Key = tuple[str, tuple[tuple[str, str | int], ...]]


class RememberingApi:
    """Answers each query as the service did the first time; errors are not remembered."""

    def __init__(self, api: Api) -> None:
        self.server = api.server
        self._api = api
        self._documents: dict[Key, Row | None] = {}
        self._pages: dict[Key, tuple[Row, ...]] = {}

    def get(self, path: str, **query: str | int) -> Row:
        """Return the document at a path; errors are those of the client."""
        document = self._documents.get(_key(path, query))
        if document is None:
            document = self._documents[_key(path, query)] = self._api.get(path, **query)
        return document

    def find(self, path: str, **query: str | int) -> Row | None:
        """Return the document at a path, None if there is none."""
        key = _key(path, query)
        if key not in self._documents:
            self._documents[key] = self._api.find(path, **query)
        return self._documents[key]

    def pages(self, path: str, **query: str | int) -> Iterator[Row]:
        """Yield all pages of a list, which are fetched before the first one is yielded."""
        key = _key(path, query)
        if key not in self._pages:
            self._pages[key] = tuple(self._api.pages(path, **query))
        yield from self._pages[key]


def _key(path: str, query: dict[str, str | int]) -> Key:
    return path, tuple(sorted(query.items()))
