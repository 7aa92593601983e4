"""Time lags on real brokers against what a producer knows: when it appended each offset.

Steady, bursty and idle partitions are read by groups that keep up, trail, stand still and go back.
A lag may be off by as much as two observations are apart, as this machine really made them.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from rules.time_lag import WhyAbsent
from service.history.kept_ends import FILE, KeptEnds
from service.observe.cluster_reader import ClusterReader, Scope
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from tests.integration.lagging import (
    BURSTY,
    IDLE,
    STEADY,
    Appender,
    Groups,
    Rounds,
    ToldLag,
    lags_of,
)
from tests.unit.service.runtime.recorded_log import RecordedLog

pytestmark = pytest.mark.integration

LOG = logging.getLogger(__name__)

ROUNDS = 11  # of each of two processes
OLD, LATER = 10, 8  # records of the idle partition before the first observation, and after it


def test_time_lags_are_off_by_no_more_than_an_interval(
    cluster: Sandbox,
    admin: SandboxAdmin,
    reader: ClusterReader,
    new_name: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic, prefix, bootstrap = new_name("lagging"), new_name("group"), cluster.bootstrap_servers
    admin.create_topic(topic, partitions=3)
    source = Appender(bootstrap, topic)
    for partition in (STEADY, BURSTY, IDLE):
        source.append(partition, OLD)
    scope = Scope(topics=re.compile(re.escape(topic)), groups=re.compile(f"{prefix}-.*"))
    told: list[ToldLag] = []
    with Groups(bootstrap, topic, prefix) as groups, ExitStack() as undo:
        groups.commit("old", IDLE, 3)
        for name in ("live", "trailing", "replay"):
            groups.commit(name, STEADY, OLD)  # a client's first commit takes long
        first = Rounds(reader, scope, kept(tmp_path).load())
        first.make()
        undo.enter_context(source.at_work())
        source.append(IDLE, LATER)
        groups.commit("waiting", IDLE, OLD + 2)  # and never again
        groups.commit("done", IDLE, OLD + LATER)
        told += played(first, groups, source)
        round_writer = kept(tmp_path)
        round_writer.current = lambda: first.ends
        round_writer.save()
        second = Rounds(reader, scope, kept(tmp_path).load())
        told += played(second, groups, source)
    apart = max(first.apart_seconds, second.apart_seconds)
    off = errors(told, source)
    LOG.info(
        "%d time lags, off by %.3f s on average and %.3f s at most; resolves to %.3f s apart",
        *(len(off), sum(off) / len(off), max(off), apart),
    )
    assert max(off) <= apart
    assert {one.why for one in told if one.group == "old"} == {WhyAbsent.OLDER_THAN_HISTORY}
    assert {one.seconds for one in told if one.group == "done"} == {0.0}
    assert {one.group for one in told if one.seconds > 0} >= {"live", "replay", "waiting"}
    waiting = [one.seconds for one in told if one.group == "waiting"]
    assert waiting == sorted(waiting)  # nobody appends, and what is unread grows older


def kept(folder: Path) -> KeptEnds:
    """Return what a new process finds."""
    return KeptEnds(folder / FILE, stop=asyncio.Event(), log=RecordedLog().log)


def played(rounds: Rounds, groups: Groups, source: Appender) -> list[ToldLag]:
    """Make rounds while groups keep up, trail by some records and go back to what they had read."""
    told: list[ToldLag] = []
    for number in range(ROUNDS):
        for partition in (STEADY, BURSTY):
            end = source.end(partition)
            groups.commit("live", partition, end)
            groups.commit("trailing", partition, max(end - 5, OLD))
            back = (
                OLD + (end - OLD) * (number % 5) // 5
            )  # over all that came since the first observation
            groups.commit("replay", partition, back)
        made = rounds.make()
        told += lags_of(made, groups.prefix, rounds.observations_us[-1])
    return told


def errors(told: list[ToldLag], source: Appender) -> list[float]:
    """Return by how many seconds each lag is off what is known of the append of its offset."""
    found: list[float] = []
    for one in told:
        if one.group == "old":
            continue
        assert one.why is None, one
        if one.committed >= one.end:
            assert one.seconds == 0.0, one
            continue
        sent, acknowledged = source.appended[one.partition, one.committed]
        least, most = one.at - acknowledged, one.at - sent
        found.append(max(least - one.seconds, one.seconds - most, 0.0))
    return found
