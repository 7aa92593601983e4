"""A client of Grafana's HTTP API: folders and dashboards, no more.

Each error's text names the server and what to do; a token is never part of it.
Source: the pages "Folder API" and "Dashboard API" of Grafana's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final, Self

import httpx2

from dashboards.files import DashboardFile
from rules.errors import (
    AuthenticationError,
    CollectError,
    ConflictError,
    RequestError,
    UnreachableError,
)
from service.cli.server.connecting import client_options

TIMEOUT_SECONDS: Final = 20.0
PAGE: Final = 1000  # folders; Grafana's own limit
MAX_PAGES: Final = 100
DENIED: Final = {
    HTTPStatus.UNAUTHORIZED: "rejects the token: it is wrong, has expired, or was revoked",
    HTTPStatus.FORBIDDEN: "denies the token: give its service account the role Editor, or the "
    "permissions to create folders and to write dashboards",
}
CONFLICTS: Final = (HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)
UNREADABLE: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
# What Grafana adds to a stored dashboard.
OWN_FIELDS: Final = frozenset({"id", "version"})


class Change(StrEnum):
    """What becomes of a dashboard."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


class Grafana:
    """A client of one Grafana."""

    def __init__(self, url: str, token: str) -> None:
        """`url` is the address, with the path that Grafana is served below, if any."""
        self.url = url.rstrip("/")
        self._client = httpx2.Client(
            base_url=self.url,
            timeout=TIMEOUT_SECONDS,
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            **client_options(self.url),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def find_folder(self, title: str) -> str | None:
        """Return the uid of a folder at the top level, None if there is none of this title.

        Raises:
            UnreachableError: no answer, or what answers is no Grafana.
            AuthenticationError: the token is rejected or denied.
        """
        uids = (str(row["uid"]) for row in self._folders() if row.get("title") == title)
        return next(uids, None)

    def create_folder(self, title: str) -> str:
        """Create a folder and return its uid; errors are those of `save`."""
        answer = self._send("POST", "/api/folders", {"title": title})
        return str(self._object(answer, f"the folder {title}")["uid"])

    def planned_change(self, file: DashboardFile, folder_uid: str | None) -> Change:
        """Return what saving a dashboard would do; errors are those of `find_folder`."""
        answer = self._send("GET", f"/api/dashboards/uid/{file.uid}")
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return Change.CREATED
        stored = self._object(answer, file.title)
        document = stored.get("dashboard") or {}
        has_moved = (stored.get("meta") or {}).get("folderUid") != folder_uid
        is_same = _without_own(document) == _without_own(file.document)
        return Change.UNCHANGED if is_same and not has_moved else Change.UPDATED

    def save(self, file: DashboardFile, folder_uid: str, change: Change) -> None:
        """Store a dashboard in a folder.

        Raises:
            ConflictError: another dashboard of the folder has its title, or somebody saved meanwhile.
            RequestError: Grafana rejects the dashboard, as one that a file provisions.
            UnreachableError, AuthenticationError: as `find_folder`.
        """
        body = {
            "dashboard": {**file.document, "id": None},
            "folderUid": folder_uid,
            "message": "tidemark dashboards push",
            # One that is there has our uid, so that it is ours.
            "overwrite": change is Change.UPDATED,
        }
        self._object(self._send("POST", "/api/dashboards/db", body), file.title)

    def _folders(self) -> Iterator[Mapping[str, Any]]:
        for page in range(1, MAX_PAGES + 1):
            answer = self._send("GET", f"/api/folders?limit={PAGE}&page={page}")
            rows = self._document(answer, "folders")
            if not isinstance(rows, list):
                raise self._not_grafana(answer)
            yield from (row for row in rows if isinstance(row, dict))
            if len(rows) < PAGE:
                return
        raise CollectError(f"{self.url} has more than {PAGE * MAX_PAGES} folders")

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> httpx2.Response:
        try:
            return self._client.request(method, path, json=body)
        except httpx2.TimeoutException as exc:
            raise UnreachableError(f"{self.url} did not answer in time") from exc
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            reason = str(exc) or type(exc).__name__
            raise UnreachableError(f"{self.url} cannot be reached: {reason}") from exc

    def _object(self, answer: httpx2.Response, subject: str) -> Mapping[str, Any]:
        document = self._document(answer, subject)
        if not isinstance(document, dict):
            raise self._not_grafana(answer)
        return document

    def _document(self, answer: httpx2.Response, subject: str) -> Any:
        document = _json(answer)
        message = document.get("message", "") if isinstance(document, dict) else ""
        status = answer.status_code
        if answer.is_success and document is not None:
            return document
        if status in DENIED:
            raise AuthenticationError(f"{self.url} {DENIED[HTTPStatus(status)]}")
        if not message:
            raise self._not_grafana(answer)
        if status in CONFLICTS:
            raise ConflictError(f"{self.url} does not save {subject}: {message}")
        if status in UNREADABLE:
            raise RequestError(f"{self.url} rejects {subject}: {message}")
        raise CollectError(f"{self.url} answers {status} for {subject}: {message}")

    def _not_grafana(self, answer: httpx2.Response) -> UnreachableError:
        kind = answer.headers.get("content-type", "no content type").partition(";")[0]
        return UnreachableError(
            f"{self.url} is not a Grafana: {answer.request.url.path} answers {answer.status_code}, {kind}"
        )


def _json(answer: httpx2.Response) -> Any:
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def _without_own(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in OWN_FIELDS}
