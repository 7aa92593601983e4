"""Composes the report of an incident from what the HTTP API has; what cannot be fetched is named in it.

Every line of the timeline is a stored fact with its time. Nothing is concluded here that a rule did not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from rules.errors import AuthenticationError, TidemarkError
from service.cli.events.relating import related_changes
from service.cli.incident.charting import charts_of
from service.cli.incident.clients import clients_of, events_of, missing_clients, rises_of
from service.cli.incident.lost import (
    leader_change,
    losses_of,
    lost_fields,
    sequence_blind_spots,
)
from service.cli.incident.relating import (
    Subject,
    is_related,
    is_related_error,
    is_related_loss,
    subjects_of,
)
from service.cli.incident.report import (
    ClientOfEvent,
    Entry,
    IncidentReport,
    Proof,
)
from service.cli.incident.rounds import times_without_rounds
from service.cli.incident.typed import typed_in
from service.cli.incident.window import Window, began_at
from service.cli.loss.queries import LossReport
from service.cli.server.listing import labels_text, severity_rank
from service.cli.server.report import Api
from service.terminal.parts import Row
from service.terminal.words import text, timestamp, timestamp_of

MOST_ALERTS: Final = 100  # whose steps are fetched
BLIND: Final = "observation_stale"
UNSHOWN: Final = ("alertname", "severity", "cluster", "topic_id", "incident")  # labels
HARMLESS: Final = "harmless"  # the client deals with it by itself
ERROR_NAMES: Final = ("application", "group", "transactional_id", "client", "topic")
PLACES: Final = ("topic", "partition")  # kinds of subjects that name a topic
ORDER: Final = (
    "events",
    "losses",
    "findings",
    "alerts",
    "deliveries",
)  # of sources, at the same time


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcripts:
    """Files that `tidemark runbook run` wrote."""

    of_this_machine: Sequence[Path] = ()  # of any Tidemark
    given: Sequence[Path] = ()


NO_TRANSCRIPTS: Final = Transcripts()


@dataclass(slots=True)
class _Facts:
    """What was fetched so far."""

    window: Window
    timeline: list[Entry] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)
    transactional_ids: set[str] = field(default_factory=set)
    missing: list[str] = field(default_factory=list)
    subjects: frozenset[Subject] | None = None  # of the alert; None: the report is of a time

    def is_related(self, row: Row) -> bool:
        """Return whether a finding or an alert is what the report is about."""
        return self.subjects is None or is_related(row, self.subjects)

    def is_related_loss(self, loss: Row) -> bool:
        """Return whether a loss is what the report is about."""
        return self.subjects is None or is_related_loss(loss, self.subjects)

    def is_related_error(self, row: Row) -> bool:
        """Return whether an application's error names what the report is about."""
        return self.subjects is None or is_related_error(row, self.subjects)

    def note(self, at: object, what: str, source: str) -> None:
        """Add a fact to the timeline, if it is of that time."""
        timestamp_ = timestamp_of(at)
        if timestamp_ is not None and self.window.has(timestamp_):
            self.timeline.append(Entry(at=timestamp_, what=what, source=source))

    def note_names(self, value: object) -> None:
        """Add the groups and transactional ids that labels or evidence name, at any depth."""
        if isinstance(value, list):
            for item in value:
                self.note_names(item)
        elif isinstance(value, dict):
            for name, item in value.items():
                if name in ("group", "transactional_id") and isinstance(item, str):
                    (self.groups if name == "group" else self.transactional_ids).add(item)
                else:
                    self.note_names(item)


def gather(
    api: Api, window: Window, alert: Row | None, transcripts: Transcripts = NO_TRANSCRIPTS
) -> IncidentReport:
    """Return the report of a time; `alert` is the one that it is about, if any.

    Raises:
        TidemarkError: nothing can be fetched.
    """
    status = api.get("status")
    cluster = str(status.get("cluster"))
    facts = _Facts(window, subjects=None if alert is None else subjects_of(alert))
    proofs = _part(facts, "findings", lambda: list(_findings(api, facts))) or []
    alerts = _part(facts, "alerts", lambda: _alerts(api, facts, alert)) or []
    losses = _part(facts, "losses", lambda: _losses(api, facts))
    clients = _part(facts, "clients", lambda: _clients(api, facts)) or []
    _part(facts, "what applications logged", lambda: _application_errors(api, facts))
    _part(facts, "what changed in the cluster", lambda: _changes(api, facts))
    _note_actions(api, facts, cluster, transcripts)
    is_blind = _note_blind_spots(api, facts, status, proofs)
    labels = [row["labels"] for row in alerts if facts.is_related(row)]
    labels += [proof.labels for proof in proofs if proof.is_related]
    charts, gaps = charts_of(api, window.begin, window.end, labels)
    return IncidentReport(
        server=api.server,
        cluster=cluster,
        made_at=timestamp_of(status.get("as_of")),
        title=_title(alert, window, cluster),
        alert=None if alert is None else str(alert["fingerprint"]),
        begin=window.begin,
        end=window.end,
        **lost_fields(losses, proofs, facts.is_related_loss, is_blind=is_blind),
        proofs=proofs,
        clients=clients,
        groups=sorted(facts.groups),
        transactional_ids=sorted(facts.transactional_ids),
        timeline=sorted(facts.timeline, key=_order),
        charts=charts,
        missing=list(dict.fromkeys([*facts.missing, *gaps])),
    )


def _note_actions(api: Api, facts: _Facts, cluster: str, transcripts: Transcripts) -> None:
    """Add who was notified, and what people did."""
    _part(facts, "notifications", lambda: _deliveries(api, facts))
    _part(facts, "silences", lambda: _silences(api, facts))
    _part(facts, "what was changed by hand", lambda: _audit(api, facts, cluster))
    _typed(facts, transcripts, api.server)


def _note_blind_spots(api: Api, facts: _Facts, status: Row, proofs: Sequence[Proof]) -> bool:
    """Return whether not everything was seen that would show a loss, and add why."""
    parts: list[list[str] | None] = [
        _part(facts, "sequences", lambda: list(sequence_blind_spots(status))),
        _part(facts, "rounds", lambda: list(times_without_rounds(api, status, facts.window))),
    ]
    facts.missing += [line for lines in parts for line in lines or ()]
    is_unknown = any(
        proof.rule == BLIND or (proof.verdict == "unknown" and proof.severity == "critical")
        for proof in proofs
    )
    is_unread = any(line.startswith("findings:") for line in facts.missing)
    return any(lines != [] for lines in parts) or is_unknown or is_unread


def _part(facts: _Facts, what: str, fetch: Callable[[], Any]) -> Any:
    """Return what is fetched; a part that cannot be is named, and is None."""
    try:
        return fetch()
    except TidemarkError as exc:
        facts.missing.append(f"{what}: {exc}")
        return None


def _findings(api: Api, facts: _Facts) -> Iterator[Proof]:
    """Yield the findings of the time, the worst first."""
    rows: dict[tuple[str, str], Row] = {}
    for state in ("open", "ended"):
        for page in api.pages("findings", state=state):
            ends = [timestamp_of(row.get("ended_at")) for row in page["items"]]
            for row, end in zip(page["items"], ends, strict=True):
                if facts.window.overlaps(began_at(row), end):
                    rows[row["id"], row["since"]] = row
            if any(end is not None and end < facts.window.begin for end in ends):
                break  # those that follow ended still earlier
    order = sorted(
        rows.values(), key=lambda row: (severity_rank(row.get("severity")), row["since"])
    )
    for row in order:
        about = labels_text(row.get("labels"), without=UNSHOWN)
        source = f"findings/{row['id']}"
        facts.note(
            row["since"], f"finding opened: {row['rule']} ({row['severity']}), {about}", source
        )
        ended = f"finding ended: {row['rule']}, {about} ({text(row.get('end_reason'))})"
        facts.note(row.get("ended_at"), ended, source)
        is_related = facts.is_related(row)
        if is_related:
            facts.note_names([row.get("labels"), row.get("evidence")])
        yield Proof(
            finding=row["id"],
            rule=row["rule"],
            summary=row.get("summary"),
            severity=row["severity"],
            verdict=row["verdict"],
            reason=row["reason"],
            labels={name: value for name, value in row["labels"].items() if name not in UNSHOWN},
            since=row["since"],
            ended_at=row.get("ended_at"),
            evidence=row.get("evidence") or {},
            is_related=is_related,
        )


def _alerts(api: Api, facts: _Facts, alert: Row | None) -> list[Row]:
    """Return the alerts of the time, the one that the report is about first, and add their steps."""
    rows = [
        row
        for page in api.pages("alerts", state="all")
        for row in page["items"]
        if facts.window.overlaps(
            timestamp_of(row.get("active_at")), timestamp_of(row.get("resolved_at"))
        )
    ]
    about = None if alert is None else alert["fingerprint"]
    rows.sort(key=lambda row: (row["fingerprint"] != about, severity_rank(row.get("severity"))))
    if len(rows) > MOST_ALERTS:
        facts.missing.append(f"the steps of {len(rows) - MOST_ALERTS:,} more alerts of that time")
    for row in rows[:MOST_ALERTS]:
        source = f"alerts/{row['fingerprint']}"
        name = f"{row['rule']}, {labels_text(row.get('labels'), without=UNSHOWN)}"
        for step in (api.find(source) or {}).get("steps") or ():
            facts.note(step["at"], f"alert {step['step']}: {name} ({step['reason']})", source)
        held = row.get("acknowledged")
        if held:
            comment = f": {held['comment']}" if held.get("comment") else ""
            facts.note(held["at"], f"acknowledged by {held['by']}: {name}{comment}", source)
        if facts.is_related(row):
            facts.note_names(row.get("labels"))
    return rows


def _losses(api: Api, facts: _Facts) -> LossReport:
    """Return the losses of the time, and add their leader changes."""
    losses = losses_of(api, facts.window)
    facts.missing += [f"now: {error.strip()}" for error in losses.errors]
    for loss in losses.losses:
        if facts.is_related_loss(loss):
            facts.note_names(loss)
        source = f"losses/{loss['id']}"
        place = f"{text(loss.get('topic'))}-{text(loss.get('partition'))}"
        detail = api.find(source) or {}
        # When each was noted first: a loss of which more is known is noted again.
        changes: dict[str, object] = {}
        for event in detail.get("events") or [{**loss, "at": loss["last_happened_at"]}]:
            if event.get("leader") is not None or event.get("leader_before") is not None:
                changes.setdefault(leader_change(place, event), event["at"])
        for change, at in changes.items():
            facts.note(at, change, source)
    return losses


def _clients(api: Api, facts: _Facts) -> list[ClientOfEvent]:
    """Return the clients that sequence events of the time name, and add when they rose."""
    events = events_of(api, facts.window)
    clients = list(clients_of(events, facts.is_related))
    facts.missing += missing_clients(events)
    for client in clients:
        for at, what in rises_of(client):
            facts.note(at, what, f"sequences/{client.sequence}")
    return clients


def _application_errors(api: Api, facts: _Facts) -> None:
    """Add what applications logged about related producers, groups and topics; it is no verdict."""
    for page in api.pages("application-errors", since=facts.window.begin.isoformat()):
        for row in page["items"]:
            if row.get("role") == HARMLESS or not facts.is_related_error(row):
                continue
            source = f"application-errors/{row['id']}"
            names = {**row, "client": row.get("client_id")}
            of = labels_text({name: names.get(name) for name in ERROR_NAMES})
            first, last = (
                row.get("first_at") or row["first_seen"],
                row.get("last_at") or row["last_seen"],
            )
            name = f"application logged {row['error']}, {of}: {row['title']}"
            facts.note(first, f"{name} ({row['count']} in all)", source)
            if last != first:
                facts.note(last, f"{name} (the last one)", source)


def _changes(api: Api, facts: _Facts) -> None:
    """Add what changed in the cluster: of the alert's topics, and of brokers and the whole cluster."""
    topics = {name for kind, name, *_ in facts.subjects or () if kind in PLACES}
    for row in related_changes(api, topics, facts.window.begin, facts.window.end):
        since = timestamp_of(row.get("since"))
        after = "" if since is None else f" (after {timestamp(since)})"
        facts.note(row["seen_at"], f"change seen: {row['summary']}{after}", f"events/{row['id']}")


def _deliveries(api: Api, facts: _Facts) -> None:
    for row in _back_to(api.pages("deliveries"), facts.window, "enqueued_at"):
        source, what = f"deliveries/{row['id']}", "firing" if row.get("is_firing") else "resolved"
        name = f"notification {row['id']} to {row['receiver']} ({what}, {row['reason']})"
        facts.note(row.get("enqueued_at"), f"{name} created", source)
        failed = f": {row['dead_reason']}" if row.get("dead_reason") else ""
        count = row.get("attempts")
        tries = f" after {count} attempt{'s' * (count != 1)}" if count else ""
        facts.note(row.get("done_at"), f"{name} {row['state']}{tries}{failed}", source)
        if row.get("done_at") is None and facts.window.has(timestamp_of(row.get("enqueued_at"))):
            facts.missing.append(f"the end of {name}: it is still {row['state']}")


def _silences(api: Api, facts: _Facts) -> None:
    for page in api.pages("silences", state="all"):
        for row in page["items"]:
            name = f"silence {row['matchers']} by {row['created_by']}: {row['comment']}"
            source = f"silences/{row['id']}"
            facts.note(row["starts_at"], f"begins: {name}", source)
            facts.note(row["ends_at"], f"ends: {name}", source)


def _audit(api: Api, facts: _Facts, cluster: str) -> None:
    query = {"since": facts.window.begin.isoformat(), "cluster": cluster}
    try:
        pages = list(api.pages("audit", **query))
    except AuthenticationError as exc:
        raise AuthenticationError("it needs --token-file with a token of scope admin") from exc
    for page in pages:
        for row in page["items"]:
            why = f": {row['why']}" if row.get("why") else ""
            facts.note(
                row["at"], f"{row['who']} did {row['what']} on {row['target']}{why}", "audit"
            )


def _typed(facts: _Facts, transcripts: Transcripts, server: str) -> None:
    """Add what transcripts have: those of this machine that queried the server, and all that are given."""
    files = [(path, server) for path in transcripts.of_this_machine]
    for path, of_server in [*files, *((path, None) for path in transcripts.given)]:
        for row in _part(facts, "transcript", lambda: typed_in(path, of_server)) or []:  # noqa: B023 - called at once
            facts.note(row.at.isoformat(), row.what, f"transcript {row.path.name}")


def _order(entry: Entry) -> tuple[datetime, int, str, str]:
    """Return the place of an entry: of those of one round, what happened comes before who was notified."""
    kind = entry.source.partition("/")[0]
    return entry.at, ORDER.index(kind) if kind in ORDER else len(ORDER), entry.source, entry.what


def _back_to(pages: Iterable[Row], window: Window, name: str) -> Iterator[Row]:
    """Yield the rows of a list, newest first, until they are before the time."""
    for page in pages:
        yield from page["items"]
        times = [timestamp_of(row.get(name)) for row in page["items"]]
        # A day earlier: until then a delivery is tried, and may have ended in that time.
        if any(at is not None and at < window.begin - timedelta(days=1) for at in times):
            return


def _title(alert: Row | None, window: Window, cluster: str) -> str:
    if alert is None:
        return f"Incident in {cluster}, {timestamp(window.begin)} to {timestamp(window.end)}"
    about = labels_text(alert.get("labels"), without=UNSHOWN)
    return f"Incident in {cluster}: {alert['rule']}, {about}"
