"""Faults that are over, from the topic's birth on, before anybody has observed: log lines tell of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import pytest

from rules.judgement import Finding
from rules.verdict import Severity
from service.observe.cluster_reader import Scope
from service.observe.watch import WatchedRound
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import CONTROLLER_ID
from service.sandbox.faults import LossTruth, prepare_loss
from tests.integration.conftest import MakeReader
from tests.integration.counting import metrics_settings
from tests.integration.elections import let_stale_lead
from tests.integration.scrape_watching import watching as scraping
from tests.integration.test_loss_returned import (
    COMMITTED,
    POSSIBLY,
    RETURNED,
    SETTLE_SECONDS,
    breaches,
    leader_of,
    logs_of,
    said,
    settled,
)
from tests.integration.watching import Watch, told
from tests.kafka_release import ELIGIBLE_REPLICAS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

NODES = [1, 2, 3, CONTROLLER_ID]


@contextmanager
def without_logs(faults: Sandbox, make_reader: MakeReader) -> Iterator[Watch]:
    """Give a watcher that reads the brokers' and the controller's metrics instead, likewise."""
    with scraping(**metrics_settings(faults), timeout_seconds=10.0) as scrapes:
        watch = Watch(make_reader(), scrapes=scrapes.scrapes)
        watch.round()
        watch.round()
        assert wait_until(
            lambda: bool(scrapes.scrapes().unclean_elections), timeout_seconds=SETTLE_SECONDS
        )
        yield watch


@contextmanager
def watching(faults: Sandbox, make_reader: MakeReader) -> Iterator[Watch]:
    """Give a watcher that reads all logs, and has made two rounds before anything happens."""
    reader = make_reader()
    with closing(logs_of(faults, NODES)) as logs:
        watch = Watch(reader, [logs])
        reader.read(Scope())
        watch.round()
        watch.round()
        yield watch


def why(found: list[Finding]) -> list[tuple[str, str]]:
    return [(one.rule.rule_id, one.reason) for one in found]


def is_reported(topic: str, *wanted: tuple[str, str]) -> Callable[[WatchedRound], bool]:
    return lambda made: bool(set(why(said(made, topic))) & set(wanted))


def test_a_loss_between_two_rounds_is_told_by_log_lines_alone(
    faults: Sandbox, make_reader: MakeReader
) -> None:
    with (
        watching(faults, make_reader) as watch,
        without_logs(faults, make_reader) as blind,
        prepare_loss("committed-loss", faults) as prepared,
    ):
        truth = prepared.inject()
        [lost] = truth.partitions
        assert_counted(blind, truth)
        made = watch.until(is_reported(truth.topic, (POSSIBLY, "unseen")), SETTLE_SECONDS)
        [finding] = said(made, truth.topic)
        assert finding.severity is Severity.WARNING
        evidence = finding.evidence
        assert (evidence["leader_before"], evidence["leader"]) == (
            lost.before.leader,
            lost.after.leader,
        )
        assert evidence["topic_id"] == truth.topic_id
        watch.round()
        assert why(breaches(watch, truth.topic)) == [(POSSIBLY, "unseen")], told(watch.rounds)

        faults.start(lost.before.leader)
        returned = (COMMITTED, RETURNED), (POSSIBLY, RETURNED)
        made = watch.until(is_reported(truth.topic, *returned), SETTLE_SECONDS)
        for one in settled(made, truth.topic):
            exact = one.evidence["exact_from"], one.evidence["exact_to"]
            assert exact == (lost.lost_from, lost.lost_to)
        watch.round()
        watch.round()
        critical = [
            one.rule.rule_id
            for one in breaches(watch, truth.topic)
            if one.severity is Severity.CRITICAL
        ]
        assert len(set(critical)) == 1, told(watch.rounds)


def assert_counted(blind: Watch, truth: LossTruth) -> None:
    """Assert that a loss of a topic that was never observed before is a warning by a counter alone."""
    made = blind.until(lambda made: bool(said(made, truth.topic)), SETTLE_SECONDS)
    [finding] = said(made, truth.topic)
    assert (finding.rule.rule_id, finding.reason) == (POSSIBLY, "unseen"), told(blind.rounds)
    assert finding.severity is Severity.WARNING
    [lost] = truth.partitions
    evidence = finding.evidence
    assert (evidence["leader_before"], evidence["leader"]) == (None, lost.after.leader)
    assert (evidence["never_observed"], evidence["unclean_elections_counted"]) == (True, 1)
    blind.round()
    assert why(breaches(blind, truth.topic)) == [(POSSIBLY, "unseen")], told(blind.rounds)


def assert_found_by_offsets(blind: Watch, truth: LossTruth) -> None:
    """Assert that a loss between two rounds is found without a line, and what came later is not known."""
    made = blind.until(is_reported(truth.topic, (COMMITTED, "lost")), SETTLE_SECONDS)
    [finding] = [one for one in said(made, truth.topic) if one.reason == "lost"]
    [lost] = truth.partitions
    evidence: Mapping[str, Any] = finding.evidence
    assert evidence["certain_from"] == lost.lost_from
    assert lost.committed_to is not None
    assert lost.lost_from < evidence["certain_to"] <= lost.committed_to
    assert evidence["unknown_since"] is not None


@ELIGIBLE_REPLICAS
def test_a_last_known_leader_that_comes_back_unseen_has_lost_nothing(
    faults: Sandbox, make_reader: MakeReader
) -> None:
    with (
        watching(faults, make_reader) as watch,
        prepare_loss("unclean-without-loss", faults) as prepared,
    ):
        truth = prepared.inject()
        assert truth.was_unclean, "the controller says so"
        leader = truth.partitions[0].after.leader
        watch.until(lambda made: leader_of(made, truth.topic) == leader, SETTLE_SECONDS)
        for _ in range(4):
            watch.round()
        assert why(breaches(watch, truth.topic)) == [], told(watch.rounds)


def test_a_loss_is_restored_when_the_old_leader_leads_again(
    faults: Sandbox, make_reader: MakeReader
) -> None:
    with (
        watching(faults, make_reader) as watch,
        without_logs(faults, make_reader) as blind,
        prepare_loss("committed-loss", faults) as prepared,
    ):
        for each in (watch, blind):
            each.until(lambda made: leader_of(made, prepared.topic) is not None, SETTLE_SECONDS)
        truth = prepared.inject()
        [lost] = truth.partitions
        assert_found_by_offsets(blind, truth)
        watch.until(is_reported(truth.topic, (COMMITTED, "lost")), SETTLE_SECONDS)
        faults.kill(lost.after.leader)  # its log has nothing that the old one lacks
        faults.start(lost.before.leader)
        let_stale_lead(faults, truth.topic)
        made = watch.until(is_reported(truth.topic, (COMMITTED, "restored")), SETTLE_SECONDS)
        [finding] = [one for one in said(made, truth.topic) if one.reason == "restored"]
        assert finding.severity is Severity.INFO
        assert (finding.evidence["restored_from"], finding.evidence["restored_to"]) == (
            lost.lost_from,
            lost.committed_to,
        )
