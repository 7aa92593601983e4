"""What Tidemark says over HTTP, read by the demo as any other client would."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Self
from urllib.parse import quote

from rules.catalogue.exactly_once_posture import RULE
from rules.errors import CollectError, NotThereError, SandboxError
from rules.verdict import Kind
from service.api.core.prefix import PREFIX
from service.cli.server.api_client import ApiClient
from service.cli.server.http_connection import HttpConnection

TIMEOUT_SECONDS: Final = 5.0
LIMIT: Final = 1000  # rows of a page: more than the demo has
POSTURE: Final = RULE.rule_id

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStatus:
    """What the API reported for one round."""

    status: Row
    partitions: Sequence[Row]
    groups: Mapping[str, Row]  # by name; their `items` are commits
    findings: Sequence[Row]  # open ones

    @property
    def round(self) -> int:
        """Return the number of the round."""
        return int(self.status["round"]["number"])

    @property
    def is_complete(self) -> bool:
        """Whether the round saw everything."""
        return bool(self.status["round"]["outcome"] == "complete")

    def is_calm(self, partitions: Sequence[Row]) -> bool:
        """Whether every replica of these partitions is in sync, and nothing is open but events and posture.

        The settings of the demo's topics and writers are wrong on purpose, and stay so.
        """
        return (
            self.is_complete
            and all(
                row["isr"] and set(row["isr"]) == set(row["replicas"] or ()) for row in partitions
            )
            and all(
                finding["kind"] == Kind.EVENT or finding["rule"] == POSTURE
                for finding in self.findings
            )
        )

    @property
    def events(self) -> set[str]:
        """Return the rules whose open findings are events."""
        return {finding["rule"] for finding in self.findings if finding["kind"] == Kind.EVENT}

    def partition(self, topic: str, number: int = 0) -> Row:
        """Return a partition's row; an empty one if it was not shown."""
        rows = (p for p in self.partitions if (p["topic"], p["partition"]) == (topic, number))
        return next(rows, {})

    def lag(self, group: str) -> int | None:
        """Return a group's read_committed lag in offsets, None if a part of it is unknown."""
        lags = [
            commit["read_committed_lag"] for commit in self.groups.get(group, {}).get("items", ())
        ]
        return sum(lags) if lags and None not in lags else None

    def finding(self, rule: str, topic: str) -> Row | None:
        """Return the open finding of a rule on a topic."""
        matches = (
            f for f in self.findings if f["rule"] == rule and f["labels"].get("topic") == topic
        )
        return next(matches, None)


def ship(address: str, application: str, lines: Sequence[str]) -> None:
    """Send lines of an application's log to a Tidemark, as a shipper of logs does.

    Raises:
        SandboxError: they were not taken.
        UnreachableError: nobody answers.
    """
    connection = HttpConnection(address, seconds=TIMEOUT_SECONDS)
    target = f"{PREFIX}/ingest/application-log?application={quote(application)}"
    headers = {"Content-Type": "text/plain"}
    answer = connection.send("POST", target, headers=headers, body="\n".join(lines).encode())
    connection.close()
    if answer.status != HTTPStatus.ACCEPTED:
        raise SandboxError(f"{address} did not take the application's log: {answer.status}")


class Api:
    """A client of one Tidemark."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = ApiClient(address, seconds=TIMEOUT_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def round(self) -> int | None:
        """Return the number of the last round, None while nobody answers."""
        try:
            return int(self._client.get("status")["round"]["number"])
        except CollectError:
            return None

    def observe(self, groups: Sequence[str]) -> RoundStatus | None:
        """Return what is shown of the last round, None while nobody answers."""
        try:
            return RoundStatus(
                status=self._client.get("status"),
                partitions=self._client.get("partitions", limit=LIMIT)["items"],
                groups={
                    name: group for name in groups if (group := self._client.find(f"groups/{name}"))
                },
                findings=self._client.get("findings", limit=LIMIT)["items"],
            )
        except CollectError:
            return None

    def rows(self, path: str, **query: str | int) -> Sequence[Row] | None:
        """Return all rows of a list, None while nobody answers."""
        try:
            return [row for page in self._client.pages(path, **query) for row in page["items"]]
        except CollectError:
            return None

    def find(self, path: str) -> Row | None:
        """Return the document at a path, None if there is none or nobody answers."""
        try:
            return self._client.find(path)
        except CollectError:
            return None

    def close_event(self, rule: str, topic: str, why: str) -> None:
        """Close the event of a rule on a topic by hand.

        Raises:
            RequestError: there is none.
        """
        matches = (
            row for row in self.rows("alerts", rule=rule) or () if row["labels"]["topic"] == topic
        )
        for row in matches:
            self._client.change("POST", f"alerts/{row['fingerprint']}/close", {"why": why})
            return
        raise NotThereError(f"there is no alert {rule} on {topic}")

    def repair_command(self, topic: str) -> str | None:
        """Return the command that ends a hanging transaction, as its finding's evidence gives it."""
        status = self.observe(())
        finding = None if status is None else status.finding("transaction_hanging", topic)
        return None if finding is None else str(finding["evidence"]["repair"])
