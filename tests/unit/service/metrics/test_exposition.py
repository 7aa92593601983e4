"""The metrics text says what prometheus-client would say, and nothing that is not known."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from rules import names
from rules.facts.column import Column, Ragged
from rules.facts.gap import GapCause
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from rules.names import METRICS
from service.metrics.exposition import Exposition
from service.metrics.formats import OPENMETRICS_1_0_0, TEXT_0_0_4
from service.metrics.totals import SelfMetrics
from tests.factories import (
    NOON,
    at,
    broker,
    commits,
    gap,
    group,
    offsets,
    partitions,
    quorum,
    report,
    snapshot,
    unseen_offsets,
)
from tests.unit.service.metrics.busy import LAGS, OPEN, TOTALS_OF_A_DAY, busy_snapshot
from tests.unit.service.metrics.reading import (
    OPENMETRICS,
    TEXT,
    TOTALS,
    Family,
    families,
    labelled,
    rendered,
    samples,
)
from tests.unit.service.metrics.reference import reference

HARD_NAMES = (
    'say "now"',
    "back\\slash",
    "line\nfeed",
    "\\n is no line feed",
    "zähler",
    "漢字 🌊",
    "brace}",
    "a,b=c",
    "# EOF",
    " ends in space ",
    "carriage\rreturn",
    "unit\x1fseparator\x85",
)


def named_snapshot(name: str) -> Snapshot:
    return snapshot(
        cluster=name,
        partitions=partitions({name: 1}),
        groups=(group(name, state=name),),
        commits=commits((0, 0, 40)),
        report=report(phase_seconds={name: 0.5}),
    )


SNAPSHOTS = {
    "quiet": snapshot(),
    "busy": busy_snapshot(),
    "nothing is known of offsets": snapshot(offsets=unseen_offsets()),
    "no topics": snapshot(partitions=Partitions.none()),
    "no brokers": snapshot(brokers=(), quorum=quorum(None)),
    "groups without commits": snapshot(groups=(group("b"), group("a"))),
}

formats = pytest.mark.parametrize("accept", [TEXT, OPENMETRICS])


@formats
@pytest.mark.parametrize("seen", SNAPSHOTS.values(), ids=SNAPSHOTS)
def test_it_says_what_prometheus_client_would_say(seen: Snapshot, accept: str) -> None:
    expected = reference(seen, TOTALS_OF_A_DAY, accept)
    assert rendered(seen, accept, totals=TOTALS_OF_A_DAY) == expected


@formats
def test_it_says_the_same_of_transactions_and_time_lags(accept: str) -> None:
    seen = busy_snapshot()
    expected = reference(seen, TOTALS_OF_A_DAY, accept, OPEN, LAGS)
    assert rendered(seen, accept, totals=TOTALS_OF_A_DAY, found=OPEN, lags=LAGS) == expected
    family = expected["tidemark_kafka_transaction_duration_seconds"]
    assert (family.type, family.unit) == ("histogram", "seconds" if accept == OPENMETRICS else "")


@formats
@pytest.mark.parametrize("name", HARD_NAMES)
def test_names_come_back_as_they_are(name: str, accept: str) -> None:
    seen = named_snapshot(name)
    found = rendered(seen, accept)
    assert found == reference(seen, TOTALS, accept)
    assert labelled(
        found, "tidemark_kafka_group_committed_offset", "cluster", "group", "topic"
    ) == {(name, name, name): 40.0}


def test_a_name_that_is_no_text_does_not_spoil_the_page() -> None:
    found = rendered(snapshot(groups=(group("bad\ud800name"),)))
    assert labelled(found, "tidemark_kafka_group_members", "group") == {("bad?name",): 1.0}


def test_every_metric_is_produced_and_none_besides() -> None:
    found = samples(rendered(busy_snapshot(), totals=TOTALS_OF_A_DAY, found=OPEN, lags=LAGS))
    labels = {name: set(metric.labels) for metric in METRICS for name in metric.series}
    for histogram in (
        names.TRANSACTION_DURATION,
        names.MARKER_DURATION,
        names.NOTIFICATION_DURATION,
    ):
        labels[histogram.series[0]].add("le")
    assert {name for name, _ in found} == set(labels)
    for name, pairs in found:
        assert {label for label, _ in pairs} <= labels[name]


@pytest.mark.parametrize("accept", [TEXT, OPENMETRICS])
def test_a_large_offset_is_written_in_full(accept: str) -> None:
    exposition = Exposition()
    exposition.update(snapshot(offsets=offsets(3, high_watermark=[2**63 - 1, 0, 0])), TOTALS)
    body, _ = exposition.body(accept, gzip=False)
    assert b'partition="0"} 9223372036854775807\n' in body


def test_an_offset_that_is_not_known_has_no_sample() -> None:
    seen = snapshot(offsets=offsets(3, last_stable_offset=[None, 100, 90]))
    found = rendered(seen)
    stable = labelled(found, "tidemark_kafka_partition_last_stable_offset", "partition")
    span = labelled(found, "tidemark_kafka_partition_open_span_offsets", "partition")
    assert stable == {("1",): 100.0, ("2",): 90.0}
    assert span == {("1",): 0.0, ("2",): 10.0}


def test_a_metric_without_any_value_is_not_mentioned() -> None:
    exposition = Exposition()
    exposition.update(snapshot(quorum=quorum(None)), TOTALS)
    body, _ = exposition.body(None, gzip=False)
    assert b"controller" not in body
    assert b"nothing_to_read" not in body


def test_no_leader_is_a_zero_and_an_unplaced_partition_is_absent() -> None:
    placed = partitions(
        {"orders": 3},
        leader=Column.of([1, None, None]),
        replicas=Ragged.of([(1, 2, 3), (1, 2, 3), None]),
    )
    found = rendered(snapshot(partitions=placed))
    leaders = labelled(found, "tidemark_kafka_partition_has_leader", "partition")
    assert leaders == {("0",): 1.0, ("1",): 0.0}
    remembered = rendered(snapshot(partitions=placed, placement_read=False))
    assert labelled(remembered, "tidemark_kafka_partition_has_leader", "partition") == {}


def test_a_duration_that_is_no_number_has_no_sample() -> None:
    found = rendered(snapshot(report=report(took_seconds=float("nan"))))
    assert "tidemark_round_duration_seconds" not in found


def test_a_cause_without_gaps_is_a_zero_because_that_is_known() -> None:
    found = labelled(rendered(snapshot(gaps=(gap(),))), "tidemark_gaps", "cause")
    assert found == {(str(cause),): float(cause is GapCause.TIMEOUT) for cause in GapCause}


@formats
def test_before_the_first_round_there_are_no_samples(accept: str) -> None:
    body, _ = Exposition().body(accept, gzip=False)
    assert body == (b"# EOF\n" if accept == OPENMETRICS else b"")


@formats
def test_a_round_is_written_once(accept: str) -> None:
    exposition = Exposition()
    exposition.update(snapshot(), TOTALS)
    first, _ = exposition.body(accept, gzip=False)
    zipped, _ = exposition.body(accept, gzip=True)
    assert exposition.body(accept, gzip=False)[0] is first
    assert exposition.body(accept, gzip=True)[0] is zipped
    assert gzip.decompress(zipped) == first


def test_the_next_round_replaces_the_bytes() -> None:
    exposition = Exposition()
    exposition.update(snapshot(quorum=quorum(1)), TOTALS)
    exposition.body(None, gzip=True)
    exposition.update(snapshot(quorum=quorum(2)), TOTALS)
    zipped, _ = exposition.body(None, gzip=True)
    assert b'controller_id="2"' in gzip.decompress(zipped)
    assert b'controller_id="1"' not in gzip.decompress(zipped)


def test_the_content_type_says_what_the_body_is() -> None:
    exposition = Exposition()
    exposition.update(snapshot(brokers=(broker(1),)), TOTALS)
    text, text_type = exposition.body(None, gzip=False)
    opened, open_type = exposition.body(OPENMETRICS, gzip=False)
    assert (text_type, open_type) == (TEXT_0_0_4, OPENMETRICS_1_0_0)
    assert b"# TYPE tidemark_duplicate_commits_total counter\n" in text
    assert b"# EOF" not in text
    assert b"# TYPE tidemark_duplicate_commits counter\n" in opened
    assert b"\ntidemark_duplicate_commits_total{" in opened
    assert opened.endswith(b"\n# EOF\n")


def test_new_numbers_keep_the_table() -> None:
    exposition = Exposition()
    exposition.update(busy_snapshot(), TOTALS)
    exposition.body(None, gzip=False)
    kept = exposition.table
    exposition.update(busy_snapshot(), TOTALS_OF_A_DAY)
    exposition.body(None, gzip=False)
    assert exposition.table is kept is not None


def test_a_round_that_nobody_scrapes_is_not_written() -> None:
    exposition = Exposition()
    exposition.update(busy_snapshot(), TOTALS)
    assert exposition.table is None
    first, _ = exposition.body(None, gzip=False)
    assert exposition.body(None, gzip=False)[0] is first, "once for all scrapers"


@pytest.mark.parametrize(
    "later",
    [
        snapshot(groups=(group(),), commits=commits((0, 0, 1)), partitions=partitions({"x": 3})),
        snapshot(
            groups=(group(),), commits=commits((0, 0, 1)), partitions=partitions({"orders": 4})
        ),
        snapshot(groups=(group("other"),), commits=commits((0, 0, 1))),
        snapshot(groups=(group(), group("other")), commits=commits((0, 0, 1))),
        snapshot(groups=(group(),), commits=commits((0, 1, 1))),
        snapshot(groups=(group(),)),
    ],
    ids=["topic", "partition", "group", "more groups", "commit elsewhere", "no commit"],
)
def test_other_subjects_make_another_table_and_the_right_text(later: Snapshot) -> None:
    exposition = Exposition()
    exposition.update(snapshot(groups=(group(),), commits=commits((0, 0, 1))), TOTALS)
    exposition.body(None, gzip=False)
    kept = exposition.table
    exposition.update(later, TOTALS)
    exposition.body(None, gzip=False)
    assert exposition.table is not kept
    fresh = Exposition()
    fresh.update(later, TOTALS)
    assert exposition.body(None, gzip=False) == fresh.body(None, gzip=False)


def test_a_new_state_of_a_group_is_shown_by_the_kept_table() -> None:
    exposition = Exposition()
    exposition.update(snapshot(groups=(group(state="Stable"),)), TOTALS)
    exposition.update(snapshot(groups=(group(state="Empty"),)), TOTALS)
    body, _ = exposition.body(None, gzip=False)
    assert b'type="consumer",state="Empty"} 1\n' in body
    assert b"Stable" not in body


def test_columns_of_a_snapshot_are_left_as_they_were() -> None:
    seen = busy_snapshot()
    before = seen.offsets.high_watermark.values.copy()
    rendered(seen)
    assert np.array_equal(seen.offsets.high_watermark.values, before)


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_scrapers_that_come_at_once_share_one_body(*, zipped: bool) -> None:
    exposition, together = Exposition(), threading.Barrier(4)
    exposition.update(busy_snapshot(), TOTALS_OF_A_DAY, OPEN)

    def scrape(_: int) -> bytes:
        together.wait(timeout=60)
        return exposition.body(TEXT, gzip=zipped)[0]

    with ThreadPoolExecutor(4) as scrapers:
        first, *others = scrapers.map(scrape, range(4))
    assert all(body is first for body in others)


def blind(exposition: Exposition, totals: SelfMetrics) -> Mapping[str, Family]:
    exposition.update_blind("default", totals)
    body, _ = exposition.body(TEXT, gzip=False)
    return families(body, TEXT)


def test_a_round_that_saw_nothing_repeats_no_old_value() -> None:
    exposition = Exposition()
    exposition.update(busy_snapshot(), TOTALS_OF_A_DAY, OPEN)
    found = blind(exposition, replace(TOTALS_OF_A_DAY, last_success=NOON, took_seconds=10.0))
    observed = {name for name in found if name.startswith("tidemark_kafka_")}
    counted = (*names.ENDED_METRICS, names.SEQUENCE_REJECTIONS)
    assert observed == {metric.name.removesuffix("_total") for metric in counted}
    assert {found[name].type for name in observed} == {"counter", "histogram"}
    assert labelled(found, "tidemark_kafka_transaction_commits_total") == {(): 2.0}
    assert "tidemark_gaps" not in found, "nobody can say how many"
    assert labelled(found, "tidemark_last_success_timestamp_seconds") == {(): NOON.timestamp()}
    assert labelled(found, "tidemark_round_duration_seconds") == {(): 10.0}
    assert labelled(found, "tidemark_rounds_total", "outcome")[("failed",)] == 10


def test_before_any_success_there_is_no_time_of_one() -> None:
    assert "tidemark_last_success_timestamp_seconds" not in blind(Exposition(), TOTALS_OF_A_DAY)


def test_what_the_service_adds_to_a_round_is_shown_beside_what_the_round_reports() -> None:
    totals = replace(TOTALS, took_seconds=2.5, phase_seconds={"rules": 0.25}, last_success=at(60))
    found = rendered(snapshot(report=report(phase_seconds={"groups": 1.0})), totals=totals)
    phases = labelled(found, "tidemark_round_phase_duration_seconds", "phase")
    assert phases == {("groups",): 1.0, ("rules",): 0.25}
    assert labelled(found, "tidemark_round_duration_seconds") == {(): 2.5}
    last = labelled(found, "tidemark_last_success_timestamp_seconds")
    assert last == {(): at(60).timestamp()}
