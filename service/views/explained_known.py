"""What the brokers know of the names in a text, as rows, for `tidemark explain`."""

from __future__ import annotations

from collections.abc import Iterator

from rules.exceptions.collected import Subjects
from rules.exceptions.timeline import LAST
from rules.facts.snapshot import Snapshot
from service.views.explained import Row
from service.views.snapshot_rows import group_rows, partition_rows

BY = "brokers"


def snapshot_answers(snapshot: Snapshot, subjects: Subjects) -> Iterator[Row]:
    """Yield the partitions and groups as one round saw them; UNKNOWN where it did not."""
    partitions = {(row["topic"], row["partition"]): row for row in partition_rows(snapshot)}
    for place in subjects.partitions:
        yield _partition(f"{place[0]}-{place[1]}", partitions.get(place))
    groups = {row["group"]: row for row in group_rows(snapshot)}
    for group in subjects.groups:
        state = groups.get(group, {}).get("state")
        summary = "it was not seen" if state is None else f"the group's state is {state}"
        yield {"by": BY, "about": group, "verdict": state or "UNKNOWN", "summary": summary}


def transaction_answer(id_: str, state: str | None) -> Row:
    """Return what the coordinator's state of a transactional id means; None: no coordinator knows it."""
    conclusion = None if state is None else LAST.get(state)
    summary = "no coordinator knows it" if conclusion is None else conclusion.title
    return {"by": BY, "about": id_, "verdict": state or "UNKNOWN", "summary": summary}


def _partition(about: str, row: Row | None) -> Row:
    if row is None:
        return {"by": BY, "about": about, "verdict": "UNKNOWN", "summary": "it was not seen"}
    isr = ", ".join(map(str, row["isr"] or ())) or "nobody"
    summary = (
        f"leader {row['leader']} in leader epoch {row['leader_epoch']}, ISR {isr}; log start "
        f"{row['log_start_offset']}, LSO {row['last_stable_offset']}, HWM {row['high_watermark']}"
    )
    verdict = "NO_LEADER" if row["leader"] is None else "HAS_LEADER"
    return {"by": BY, "about": about, "verdict": verdict, "summary": summary}
