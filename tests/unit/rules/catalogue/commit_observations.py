"""Observes one group that has committed on one partition."""

from __future__ import annotations

from typing import Any

from rules.verdict import Verdict
from tests.factories import commits, group, partitions, topic_id, unseen_offsets

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH


def at(
    committed: int,
    *,
    nothing: int | None = None,
    failed: bool = False,
    members: int | None = 1,
    **more: Any,
) -> dict[str, Any]:
    """Return an observation in which one group has committed; all ends stand at 100."""
    return {
        "groups": (group(member_count=members),),
        "commits": commits((0, 0, committed), nothing_to_read=[nothing], scan_failed=[failed]),
        **more,
    }


UNSEEN: dict[str, Any] = {"offsets": unseen_offsets(1)}
UNNAMED: dict[str, Any] = {"partitions": partitions({"orders": 1}, topic_ids=(None,))}
LEFT_OUT: dict[str, Any] = {"partitions": partitions({}), "placement_complete": False}
AGAIN: dict[str, Any] = {
    "partitions": partitions({"orders": 1}, topic_ids=(topic_id("orders", creation=1),))
}
