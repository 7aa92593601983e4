"""What is asked of a running Tidemark about losses, and what its answers mean: a list of nothing
means something only if the service sees.
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
UNKNOWN: Final = frozenset({"not_determinable"})  # whether anything is lost nobody can tell
RESTORED: Final = (
    "restored"  # reason of a loss that is none any more: a replica with the records leads
)
PROVEN: Final = "proven"  # reason of what committed_lost of the same partition tells
# What these rules cannot judge may be lost.
SEEING: Final = ("committed_records_lost", "records_possibly_lost", "committed_beyond_log_end")
ELECTION: Final = "unclean_election"
IN_FULL: Final = 20  # losses of one partition
OPEN: Final = "open"


class Api(Protocol):
    """Whoever asks a Tidemark."""

    server: str

    def get(self, path: str, **query: str | int) -> Row:
        """Return what is at a path."""

    def find(self, path: str, **query: str | int) -> Row | None:
        """Return what is at a path, None if there is nothing."""

    def pages(self, path: str, **query: str | int) -> Iterator[Row]:
        """Give all pages of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Losses, and what keeps the service from knowing all of them."""

    server: str
    cluster: str
    as_of: str | None
    losses: tuple[Row, ...]  # of a list one for each partition of an incident
    errors: tuple[str, ...]
    gaps: tuple[Row, ...] = ()  # of the last round, the first ones
    incidents: tuple[Row, ...] | None = None  # None where losses were asked for

    @property
    def exit_code(self) -> ExitCode:
        """Return what a script learns from a list."""
        if any(_is_bad(loss) for loss in self.losses):
            return ExitCode.LOST
        is_unknown = any(loss.get("class") in UNKNOWN for loss in self.losses)
        return ExitCode.INCOMPLETE if self.errors or is_unknown else ExitCode.OK

    @property
    def document(self) -> dict[str, Any]:
        """Return the JSON document: incidents with their partitions, or losses; keys may be added."""
        found = "losses" if self.incidents is None else "incidents"
        return {
            "server": self.server,
            "cluster": self.cluster,
            "as_of": self.as_of,
            "complete": not self.errors,
            "errors": list(self.errors),
            "gaps": list(self.gaps),
            found: list(self.losses if self.incidents is None else self.incidents),
        }


def ask(api: Api, asked: Mapping[str, str | int]) -> Known:
    """Return the incidents that match; `asked` are parameters of `/losses`."""
    pages = list(api.pages("losses", **asked))
    incidents = tuple(_incident(item) for page in pages for item in page["items"])
    losses = [loss for incident in incidents for loss in incident["partitions"]]
    known = _known(api, losses, pages[-1], is_stored=asked.get("state", OPEN) != OPEN)
    return replace(known, incidents=incidents)


def _incident(item: Row) -> Row:
    """Return an item of a list; one of an older Tidemark is a loss, and an incident by itself."""
    if "partitions" in item:
        return item
    summary = f"{item.get('class')} of {item.get('topic')}-{item.get('partition')}"
    known = {name: item.get(name) for name in ("id", "severity", "since", "state")}
    return {**known, "summary": summary, "partition_count": 1, "partitions": [item]}


def fetch(api: Api, name: str) -> Known | None:
    """Return a loss by its id, or all of a partition, with the times at which they happened.

    Of a partition the open ones; those that ended, if none is open. None: the name is neither.
    """
    if LOSS_ID.fullmatch(name):
        return _one(api, name)
    place = PLACE.fullmatch(name)
    if place is None:
        return None
    where = {"topic": place[1], "partition": int(place[2])}
    found = ask(api, where)
    if not found.losses:
        found = ask(api, {**where, "state": "all"})
    worst = sorted(found.losses, key=_badness)[:IN_FULL]
    details = ({"loss": loss} | {**(api.find(f"losses/{loss['id']}") or {})} for loss in worst)
    told = (
        {**_told(one), "also": loss.get("also") or []}
        for one, loss in zip(details, worst, strict=True)
    )
    rest = sorted(found.losses, key=_badness)[IN_FULL:]
    return replace(found, losses=(*told, *rest), incidents=None)


def is_there(api: Api, *, topic: str | None, group: str | None) -> str | None:
    """Return what a filter names that the cluster does not have, None if it has all."""
    if topic is not None and not api.get("partitions", topic=topic, limit=1)["items"]:
        return f"no topic matches {topic!r}"
    if group is not None and not api.get("groups", name=group, limit=1)["items"]:
        return f"no group matches {group!r}"
    return None


def _one(api: Api, loss_id: str) -> Known:
    detail = api.find(f"losses/{loss_id}")
    if detail is None:
        page = api.get("losses", limit=1)  # an older Tidemark has no losses at all
        return _known(api, [], page, is_stored=False)
    return _known(api, [_told(detail)], detail, is_stored=False)


def _told(detail: Row) -> Row:
    """Return a loss with what only its own page tells."""
    return {**detail["loss"], "events": detail.get("events"), "error": detail.get("error")}


def _known(api: Api, losses: Sequence[Row], page: Row, *, is_stored: bool) -> Known:
    status = api.get("status")
    gaps = gaps_of(api, status)
    errors = [*blind_spots(status, gaps), *(stored_error(page, status) if is_stored else ())]
    return Known(
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
    """Give why something may be there that the service does not know of.

    `gaps` are those of the last round. What the rules `seeing` cannot judge may be lost.
    """
    outcome, error = status["round"]["outcome"], status["round"]["error"]
    if not status["is_current"]:
        yield f"the service shows old data: {error or 'its last round failed'}"
    elif outcome != "complete":
        causes = ", ".join(f"{n} {cause}" for cause, n in (status["gaps_by_cause"] or {}).items())
        yield f"the last round has gaps: {causes or error or outcome}"
        yield from gap_lines(status, gaps or [])
    if status["storage"]["state"] == "not_loaded":
        why = status["storage"]["error"] or "it is being read"
        yield f"what was known before the service started is not loaded: {why}"
    said = {rule["rule"]: rule for rule in status["rules"]}
    for rule_id in seeing:
        unknown = said.get(rule_id, {}).get("unknown")
        if unknown is None:
            yield f"rule {rule_id} was not asked"
        elif unknown:
            yield f"rule {rule_id} cannot judge {unknown} of its subjects"


def stored_error(page: Row, status: Row) -> Iterator[str]:
    """Give why the history may lack a loss."""
    storage = status["storage"]
    if not page["is_current"] and status["is_current"]:
        why = storage["error"] or f"storage is {storage['state']}"
        yield f"the history ends at {page['as_of'] or 'the start'}: {why}"
    if page.get("is_cut"):
        yield "more losses match than are shown, and the older ones are left out: ask by a filter"
    if storage["lost_transitions"]:
        yield f"{storage['lost_transitions']} changes were lost while the database was away"


def _is_bad(loss: Row) -> bool:
    """Whether committed records are gone, or may be; what is `proven` elsewhere is gone for its group.

    Where the records of a loss are back, neither the election that lost them is one any more, nor
    what was proven by it.
    """
    is_back = loss.get("reason") == RESTORED
    others = [one for one in loss.get("also") or () if not is_back or not _is_of_restored(one)]
    is_known = loss.get("class") not in HARMLESS | UNKNOWN and not is_back
    return is_known or any(map(_is_bad, others))


def _is_of_restored(also: Row) -> bool:
    """Whether what else was found says no more than the loss itself, whose records are back."""
    return also.get("class") == ELECTION or also.get("reason") == PROVEN


def _badness(loss: Row) -> tuple[int, str]:
    class_ = loss.get("class")
    place = WORST_FIRST.index(class_) if class_ in WORST_FIRST else -1
    return place, str(loss.get("group") or "")
