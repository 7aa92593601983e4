"""Whose log lines are read of the controllers: what is not in them did not happen.

An active controller writes of each unclean election as it decides it. Where its log is read beyond the
last observation before a change, and it wrote of none, the election was clean. One with ZooRoundWriter writes
nothing of elections, and is not told as the active one.
"""

from __future__ import annotations

from collections.abc import Mapping

from rules.facts.clocks import CLOCKS_AGREE_US
from rules.facts.column import Bools, Int64s
from rules.facts.identity import BrokerId
from rules.facts.last_observation import microseconds
from rules.view import View


def controllers_read(view: View) -> Mapping[BrokerId, int]:
    """Return when each controller wrote last of what was read, also in this round, by its own clock."""
    latest = {} if view.before is None else dict(view.before.losses.controllers)
    for source in view.snapshot.broker_log.sources:
        for node, at in source.controllers:
            latest[node] = max(latest.get(node, 0), microseconds(at))
    return latest


def is_read_since(view: View, timestamps_us: Int64s) -> Bools:
    """Mark the times after which the active controller has written something that was read."""
    read: Bools = timestamps_us < _wrote_us(view) + CLOCKS_AGREE_US
    return read


def _wrote_us(view: View) -> int:
    """Return when the active controller wrote last of what was read; 0 where a line of it may be missing.

    What an earlier round read of it counts only while every source is read: after that one observed the
    cluster, the log was read briefly longer.
    """
    active, log = view.snapshot.controller, view.snapshot.broker_log
    if active is None or log.is_behind or not log.is_read:
        return 0
    whole = [one for one in log.sources if not (one.error or one.unparsed or one.lost_bytes)]
    if len(whole) == len(log.sources):
        return controllers_read(view).get(active, 0)
    times = (at for source in whole for node, at in source.controllers if node == active)
    return max(map(microseconds, times), default=0)
