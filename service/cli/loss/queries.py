"""Query a running Tidemark for losses, and judge its answers: an empty list means that there is no
loss only if the service observes everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from service.cli.terminal.exit_codes import ExitCode
from service.cli.terminal.gaps import gap_lines, gaps_of

Row = Mapping[str, Any]

LOSS_ID: Final = re.compile(r"[a-z][a-z0-9_]{0,99}-[0-9a-f]{16}")
PLACE: Final = re.compile(r"([a-zA-Z0-9._-]{1,249})-([0-9]{1,10})")
WORST_FIRST: Final = (
    "committed_lost",
    "possibly_lost",
    "committed_beyond_log_end",
    "unclean_election",
    "not_determinable",
    "unreplicated_lost",
)
# Never committed: no producer that waits for all in-sync replicas lost anything.
HARMLESS: Final = frozenset({"unreplicated_lost"})
UNKNOWN: Final = frozenset({"not_determinable"})  # whether anything is lost cannot be determined
RESTORED: Final = "restored"  # reason of a loss that has ended: a replica with the records leads
PROVEN: Final = "proven"  # reason of a finding that follows from committed_lost of its partition
# Records may be lost where these rules cannot judge.
SEEING: Final = ("committed_records_lost", "records_possibly_lost", "committed_beyond_log_end")
ELECTION: Final = "unclean_election"
IN_FULL: Final = 20  # losses of one partition
OPEN: Final = "open"


class Api(Protocol):
    """A client of the HTTP API of a Tidemark."""

    server: str

    def get(self, path: str, **query: str | int) -> Row:
        """Return the document at a path."""

    def find(self, path: str, **query: str | int) -> Row | None:
        """Return the document at a path, None if there is none."""

    def pages(self, path: str, **query: str | int) -> Iterator[Row]:
        """Yield all pages of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossReport:
    """Losses, and the errors because of which there may be more."""

    server: str
    cluster: str
    as_of: str | None
    losses: tuple[Row, ...]  # in a list, one for each partition of an incident
    errors: tuple[str, ...]
    gaps: tuple[Row, ...] = ()  # of the last round, the first ones
    incidents: tuple[Row, ...] | None = None  # None if single losses were queried

    @property
    def exit_code(self) -> ExitCode:
        """Return the exit code for a list."""
        if any(_is_bad(loss) for loss in self.losses):
            return ExitCode.LOST
        is_unknown = any(loss.get("class") in UNKNOWN for loss in self.losses)
        return ExitCode.INCOMPLETE if self.errors or is_unknown else ExitCode.OK

    @property
    def document(self) -> dict[str, Any]:
        """Return the JSON document: incidents with their partitions, or losses; keys may be added."""
        name = "losses" if self.incidents is None else "incidents"
        return {
            "server": self.server,
            "cluster": self.cluster,
            "as_of": self.as_of,
            "complete": not self.errors,
            "errors": list(self.errors),
            "gaps": list(self.gaps),
            name: list(self.losses if self.incidents is None else self.incidents),
        }


def list_losses(api: Api, parameters: Mapping[str, str | int]) -> LossReport:
    """Return the incidents that match; `parameters` are those of `/losses`."""
    pages = list(api.pages("losses", **parameters))
    incidents = tuple(_incident(item) for page in pages for item in page["items"])
    losses = [loss for incident in incidents for loss in incident["partitions"]]
    loss_report = _build_report(
        api, losses, pages[-1], is_stored=parameters.get("state", OPEN) != OPEN
    )
    return replace(loss_report, incidents=incidents)


def _incident(item: Row) -> Row:
    """Return an item of a list as an incident; an older Tidemark lists single losses."""
    if "partitions" in item:
        return item
    summary = f"{item.get('class')} of {item.get('topic')}-{item.get('partition')}"
    fields = {name: item.get(name) for name in ("id", "severity", "since", "state")}
    return {**fields, "summary": summary, "partition_count": 1, "partitions": [item]}


def fetch_losses(api: Api, name: str) -> LossReport | None:
    """Return a loss by its id, or all losses of a partition, with the times at which they happened.

    For a partition these are the open losses, or the ended ones if none is open. None: the name is
    neither an id nor a partition.
    """
    if LOSS_ID.fullmatch(name):
        return _fetch_loss(api, name)
    place = PLACE.fullmatch(name)
    if place is None:
        return None
    where = {"topic": place[1], "partition": int(place[2])}
    losses = list_losses(api, where)
    if not losses.losses:
        losses = list_losses(api, {**where, "state": "all"})
    worst = sorted(losses.losses, key=_badness)[:IN_FULL]
    details = ({"loss": loss} | {**(api.find(f"losses/{loss['id']}") or {})} for loss in worst)
    detailed = (
        {**_merge_details(detail), "also": loss.get("also") or []}
        for detail, loss in zip(details, worst, strict=True)
    )
    rest = sorted(losses.losses, key=_badness)[IN_FULL:]
    return replace(losses, losses=(*detailed, *rest), incidents=None)


def find_missing(api: Api, *, topic: str | None, group: str | None) -> str | None:
    """Return which filter matches nothing in the cluster, None if all match."""
    if topic is not None and not api.get("partitions", topic=topic, limit=1)["items"]:
        return f"no topic matches {topic!r}"
    if group is not None and not api.get("groups", name=group, limit=1)["items"]:
        return f"no group matches {group!r}"
    return None


def _fetch_loss(api: Api, loss_id: str) -> LossReport:
    detail = api.find(f"losses/{loss_id}")
    if detail is None:
        page = api.get("losses", limit=1)  # an older Tidemark has no losses at all
        return _build_report(api, [], page, is_stored=False)
    return _build_report(api, [_merge_details(detail)], detail, is_stored=False)


def _merge_details(detail: Row) -> Row:
    """Return a loss with the fields that only its own document has."""
    return {**detail["loss"], "events": detail.get("events"), "error": detail.get("error")}


def _build_report(api: Api, losses: Sequence[Row], page: Row, *, is_stored: bool) -> LossReport:
    status = api.get("status")
    gaps = gaps_of(api, status)
    errors = [*blind_spots(status, gaps), *(stored_error(page, status) if is_stored else ())]
    return LossReport(
        server=api.server,
        cluster=str(status.get("cluster")),
        as_of=page["as_of"],
        losses=tuple(losses),
        errors=tuple(errors),
        gaps=tuple(gaps),
    )


def blind_spots(
    status: Row, gaps: list[Row] | None = None, *, seeing: Sequence[str] = SEEING
) -> Iterator[str]:
    """Yield the reasons why there may be losses that the service does not know of.

    `gaps` are those of the last round. Records may be lost where the rules `seeing` cannot judge.
    """
    outcome, error = status["round"]["outcome"], status["round"]["error"]
    if not status["is_current"]:
        yield f"the service shows old data: {error or 'its last round failed'}"
    elif outcome != "complete":
        causes = ", ".join(f"{n} {cause}" for cause, n in (status["gaps_by_cause"] or {}).items())
        yield f"the last round has gaps: {causes or error or outcome}"
        yield from gap_lines(status, gaps or [])
    if status["storage"]["state"] == "not_loaded":
        why = status["storage"]["error"] or "loading is in progress"
        yield f"what was known before the service started is not loaded: {why}"
    said = {rule["rule"]: rule for rule in status["rules"]}
    for rule_id in seeing:
        unknown = said.get(rule_id, {}).get("unknown")
        if unknown is None:
            yield f"rule {rule_id} was not evaluated"
        elif unknown:
            yield f"rule {rule_id} cannot judge {unknown} of its subjects"


def stored_error(page: Row, status: Row) -> Iterator[str]:
    """Yield the reasons why the history may lack a loss."""
    storage = status["storage"]
    if not page["is_current"] and status["is_current"]:
        why = storage["error"] or f"storage is {storage['state']}"
        yield f"the history ends at {page['as_of'] or 'the start'}: {why}"
    if page.get("is_cut"):
        yield "more losses match than are shown, and the older ones are left out: use a filter"
    if storage["lost_transitions"]:
        yield f"{storage['lost_transitions']} changes were lost while the database was unavailable"


def _is_bad(loss: Row) -> bool:
    """Whether committed records are lost, or may be; a finding `proven` by another loss counts too.

    If the records of a loss are back, neither the election that lost them counts any more, nor a
    finding that it proved.
    """
    is_back = loss.get("reason") == RESTORED
    others = [
        other for other in loss.get("also") or () if not is_back or not _is_of_restored(other)
    ]
    is_known = loss.get("class") not in HARMLESS | UNKNOWN and not is_back
    return is_known or any(map(_is_bad, others))


def _is_of_restored(also: Row) -> bool:
    """Whether another finding says no more than the loss itself, whose records are back."""
    return also.get("class") == ELECTION or also.get("reason") == PROVEN


def _badness(loss: Row) -> tuple[int, str]:
    class_ = loss.get("class")
    place = WORST_FIRST.index(class_) if class_ in WORST_FIRST else -1
    return place, str(loss.get("group") or "")
