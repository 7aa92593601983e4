"""What a watcher takes from feeds: brokers' logs and metrics."""

from __future__ import annotations

from typing import Any

import pytest

from rules.facts.gap import GapCause, GapScope
from rules.facts.scrapes import ScrapeFailure, Scrapes
from rules.verdict import Verdict
from service.observe.cluster_reader import Scope
from service.observe.watch import WatchedRound, Watcher
from tests.fakes import CountedFeed
from tests.scraped import client_reading, endpoint_state, scrapes
from tests.unit.service.observe.watchers import Script, watcher_of


def _ok_and_unknown(made: WatchedRound, rule_id: str) -> tuple[int, int]:
    (said,) = (one for one in made.judged.judgements if one.rule.rule_id == rule_id)
    return said.count(Verdict.OK), said.count(Verdict.UNKNOWN)


def test_a_feed_goes_on_where_the_last_round_ended_and_one_that_is_behind_is_read_soon() -> None:
    feed = CountedFeed(limit=10, waiting=25)
    watcher = watcher_of(Script({}, {}, {}), feeds=(feed,))
    made = [watcher.make_round() for _ in range(3)]
    logs = [one.snapshot.broker_log for one in made if one.snapshot is not None]
    assert [[source.lines for source in log.sources] for log in logs] == [[10], [10], [5]]
    assert [one.next_is_early for one in made] == [True, True, False]
    assert feed.began == [None, 10, 20]


def test_what_waits_of_a_feed_is_a_gap_and_no_rule_of_log_lines_is_ok() -> None:
    watcher = watcher_of(Script({}, {}), feeds=(CountedFeed(limit=10, waiting=15),))
    behind, done = watcher.make_round(), watcher.make_round()
    assert behind.snapshot is not None
    assert done.snapshot is not None
    assert [(gap.what, gap.cause, gap.scope) for gap in behind.snapshot.gaps] == [
        ("log lines of brokers (counted)", GapCause.LIMIT, GapScope.BROKER_LOG)
    ]
    assert done.snapshot.gaps == ()
    counts = [_ok_and_unknown(one, "sequence_gap_loss") for one in (behind, done)]
    assert counts == [(0, 1), (1, 0)]


def test_a_round_that_could_not_be_made_reads_no_feed() -> None:
    feed = CountedFeed(waiting=5)
    watcher = watcher_of(Script(None, {}), feeds=(feed,))
    watcher.make_round()
    assert feed.began == []
    assert watcher.remembered.log_positions == {}
    watcher.make_round()
    assert watcher.remembered.log_positions == {"counted": "5"}


def test_a_round_that_dies_after_it_read_a_feed_leaves_its_position() -> None:
    def die(*_: object) -> Any:
        raise ArithmeticError("a defect")

    feed = CountedFeed(waiting=5)
    script = Script({}, {})
    watcher = Watcher(
        "default",
        script,
        Scope(),
        utc_now=script.utc_now,
        monotonic=script.monotonic,
        attempt=die,
        feeds=(feed,),
    )
    for _ in range(2):
        with pytest.raises(ArithmeticError):
            watcher.make_round()
    assert feed.began == [None, None]


def test_no_feed_is_read_before_it_is_known_where_to_go_on_and_a_gap_says_so() -> None:
    feed = CountedFeed(waiting=5)
    watcher = watcher_of(Script({}), feeds=(feed,))
    seen = watcher.make_round(knows_positions=False).snapshot
    assert feed.began == []
    assert seen is not None
    assert [gap.scope for gap in seen.gaps] == [GapScope.BROKER_LOG]
    assert not seen.broker_log.is_read


def test_without_feeds_nothing_is_missing_from_a_round() -> None:
    seen = watcher_of(Script({})).make_round(knows_positions=False).snapshot
    assert seen is not None
    assert seen.gaps == ()
    assert not seen.broker_log.is_read


def test_a_round_takes_what_metrics_said_and_tells_what_they_did_not() -> None:
    silent = ScrapeFailure(cause=GapCause.TIMEOUT, why="no whole answer within 5 s")
    told = scrapes(client_reading(), endpoints=(endpoint_state(failures=(silent,)),))
    made = watcher_of(Script({}), scraped=lambda: told).make_round()
    assert made.snapshot is not None
    assert made.snapshot.scrapes is told
    assert [one.scope for one in made.snapshot.gaps] == [GapScope.SCRAPES]


def test_a_round_over_a_cluster_that_is_away_takes_no_metrics() -> None:
    asked: list[int] = []

    def scraped() -> Scrapes:
        asked.append(1)
        return scrapes()

    watcher_of(Script(None), scraped=scraped).make_round()
    assert asked == []
