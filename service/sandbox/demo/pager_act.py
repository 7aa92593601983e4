"""What the pager got, compared with what Tidemark says that it sent, and what fires."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from collectors.naming import counted
from service.sandbox.demo.act import Act, Observation, Step
from service.sandbox.demo.api import Api, Row
from service.sandbox.demo.sequence_act import REORDERING
from service.sandbox.demo.stage import PARCELS, Stage
from service.terminal.words import few

TAKEN: Final = 200
DONE: Final = frozenset(("delivered", "superseded"))
CLOSED: Final = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PagerRecord:
    """What arrived, what was sent, and what fires now."""

    got: Sequence[Row]  # requests, in the order of their arrival
    deliveries: Sequence[Row]
    alerts: Sequence[Row]  # all that are stored

    @property
    def taken(self) -> list[Row]:
        """Return the requests that were answered with success."""
        return [row for row in self.got if row["answered"] == TAKEN]

    def errors(self) -> Iterator[str]:
        """Yield what keeps this from being every notification, once and in order."""
        open_ = [row for row in self.deliveries if row["state"] not in DONE]
        if open_:
            yield f"{counted(len(open_), 'notification')} not done yet"
        if len({row["webhook_id"] for row in self.taken}) < len(self.taken):
            yield "something was taken twice"
        if any(row["signature"] != "verified" for row in self.got):
            yield "something is not signed"
        if _by_group(self.taken) != self._sent():
            yield "what arrived is not what was sent, in its order"
        if self._notified_as_firing() != self._firing():
            yield "what the pager was notified of is not what fires now"

    def ends(self, fingerprint: str) -> Row | None:
        """Return the request that reported an alert resolved; None if it was not the last one about it."""
        pairs = [(row, alert) for row in self.taken for alert in _alerts(row)]
        mine = [(row, alert) for row, alert in pairs if alert["fingerprint"] == fingerprint]
        return mine[-1][0] if mine and mine[-1][1]["status"] == "resolved" else None

    def lines(self) -> Iterator[str]:
        """Yield one line per request."""
        for row in self.got:
            answered = "" if row["answered"] == TAKEN else f", answered {row['answered']}"
            again = "" if row["attempt"] == 1 else f", attempt {row['attempt']}"
            yield (
                f"{row['number']:>3}  {row['at'][11:19]} UTC  {row['webhook_id']}  "
                f"{row['title']} on {_about(row)} ({row['reason']}{again}{answered})"
            )

    def _sent(self) -> dict[str, list[str]]:
        done = [row for row in self.deliveries if row["state"] == "delivered"]
        return _by_group(sorted(done, key=lambda row: row["id"]))

    def _notified_as_firing(self) -> set[str]:
        """Return what the pager was last notified of as firing, without what is muted now."""
        last = {
            alert["fingerprint"]: alert["status"] for row in self.taken for alert in _alerts(row)
        }
        firing = {name for name, status in last.items() if status == "firing"}
        return firing - {row["fingerprint"] for row in self.alerts if _is_muted(row)}

    def _firing(self) -> set[str]:
        rows = (row for row in self.alerts if row["state"] == "firing" and not _is_muted(row))
        return {row["fingerprint"] for row in rows}


def read_pager(stage: Stage) -> PagerRecord | None:
    """Return what arrived and what was sent; None while Tidemark does not answer."""
    with Api(stage.address) as api:
        alerts = api.rows("alerts", state="all")
        deliveries = api.rows("deliveries")
    if alerts is None or deliveries is None:
        return None
    return PagerRecord(got=stage.pager.got(), deliveries=deliveries, alerts=alerts)


def _is_closed(observed: Observation) -> str | None:
    pager_record = read_pager(observed.stage)
    if pager_record is None or observed.last.finding(REORDERING, PARCELS) is not None:
        return None
    closed = (row for row in pager_record.alerts if row["end_reason"] == CLOSED)
    notified = [
        (row, end) for row in closed if (end := pager_record.ends(row["fingerprint"])) is not None
    ]
    if not notified:
        return None
    row, end = notified[0]
    return f"{row['rule']} ended, and the pager was notified: {end['webhook_id']} {end['title']}"


def _all_arrived(observed: Observation) -> str | None:
    pager_record = read_pager(observed.stage)
    if pager_record is None or not pager_record.taken or list(pager_record.errors()):
        return None
    return describe_arrivals(pager_record)


def describe_arrivals(pager_record: PagerRecord) -> str:
    """Return all that arrived, in order."""
    got, taken = pager_record.got, pager_record.taken
    groups, rejected = len(_by_group(taken)), len(got) - len(taken)
    came_again = {row["webhook_id"] for row in got} == {row["webhook_id"] for row in taken}
    head = (
        f"{len(taken)} notifications of {counted(groups, 'group')}, each taken once, in order, "
        f"all signed; {counted(rejected, 'request')} rejected on purpose, and "
        f"{'sent again' if came_again else 'overtaken by what was newer'}"
    )
    return "\n        ".join([head, *pager_record.lines()])


def _by_group(rows: Sequence[Row]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        groups[row["group_key"]].append(row["webhook_id"])
    return dict(groups)


def _alerts(row: Row) -> Sequence[Row]:
    alerts: Sequence[Row] = (row["body"] or {}).get("alerts", ())
    return alerts


def _about(row: Row) -> str:
    """Return the subjects of a request's alerts."""
    labels = [alert["labels"] for alert in _alerts(row)]
    return few(sorted({_subject(label) for label in labels}))


def _subject(labels: Row) -> str:
    place = f"{labels['topic']}-{labels['partition']}" if "partition" in labels else None
    names = (labels.get("group"), labels.get("transactional_id"), labels.get("client"), place)
    return " of ".join(name for name in names if name) or "the cluster"


def _is_muted(row: Row) -> bool:
    return bool(row["silenced_by"] or row["inhibited_by"])


PAGER: Final = Act(
    title="What the pager got",
    steps=[
        Step(
            did=f"the harmless gap on {PARCELS} was closed by hand, as an event that is dealt with",
            do=Stage.close_reordering,
            seen=_is_closed,
            limit_seconds=60,
        ),
        Step(
            did="a receiver took what Tidemark sent, all the time; it had rejected the first request",
            seen=_all_arrived,
            limit_seconds=60,
        ),
    ],
)
