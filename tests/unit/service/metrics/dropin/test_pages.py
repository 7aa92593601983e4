"""A drop-in page is written at most once per round, only when scraped, and never from an old round."""

from __future__ import annotations

import gzip
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from rules.facts.column import Column
from service.metrics.dropin import EXPORTERS, KMINION
from service.metrics.dropin.exporter import Exporter, ObservedRound
from service.metrics.exposition import Exposition
from tests.factories import group, snapshot
from tests.unit.service.metrics.dropin.reading import rendered
from tests.unit.service.metrics.dropin.whole import shared_snapshot, whole_snapshot
from tests.unit.service.metrics.reading import OPENMETRICS, TEXT, TOTALS, families, samples

each = pytest.mark.parametrize("exporter", EXPORTERS, ids=lambda exporter: exporter.name)


class Written:
    """An exporter with one metric, and how often its column was taken."""

    def __init__(self) -> None:
        self.count = 0
        family = KMINION.families[0]

        def counted(seen: ObservedRound) -> Column:
            self.count += 1
            return family.column(seen)

        families_ = (replace(family, column=counted),)
        self.exporter = replace(KMINION, name="counted", families=families_, singles=())


def test_a_page_is_written_when_it_is_first_scraped() -> None:
    exposition, written = Exposition(), Written()
    for _ in range(3):
        exposition.update(whole_snapshot(), TOTALS)
    exposition.body(None, gzip=True)
    exposition.body(None, gzip=False, exporter=KMINION)
    assert written.count == 0, "nobody scraped it"
    for _ in range(2):
        for accept in (TEXT, OPENMETRICS, None):
            for zipped in (False, True):
                exposition.body(accept, gzip=zipped, exporter=written.exporter)
    assert written.count == 4, (
        "once in each form: lines are not kept, which would be the text twice"
    )
    exposition.update(whole_snapshot(), TOTALS)
    assert written.count == 4
    exposition.body(None, gzip=False, exporter=written.exporter)
    assert written.count == 5


def test_scrapes_at_the_same_time_wait_for_one_page() -> None:
    exposition, written = Exposition(), Written()
    exposition.update(whole_snapshot(), TOTALS)
    with ThreadPoolExecutor(8) as threads:
        scrapes = [
            threads.submit(exposition.body, None, gzip=False, exporter=written.exporter)
            for _ in range(16)
        ]
    assert len({scrape.result() for scrape in scrapes}) == 1
    assert written.count == 1


@each
def test_plain_and_compressed_bodies_are_kept_and_equal(exporter: Exporter) -> None:
    exposition = Exposition()
    exposition.update(whole_snapshot(), TOTALS)
    plain, content_type = exposition.body(OPENMETRICS, gzip=False, exporter=exporter)
    zipped, _ = exposition.body(OPENMETRICS, gzip=True, exporter=exporter)
    assert gzip.decompress(zipped) == plain
    assert plain.endswith(b"\n# EOF\n")
    assert content_type.startswith("application/openmetrics-text")
    assert exposition.body(OPENMETRICS, gzip=False, exporter=exporter)[0] is plain


@each
def test_before_the_first_round_there_is_nothing(exporter: Exporter) -> None:
    assert Exposition().body(TEXT, gzip=False, exporter=exporter)[0] == b""


@each
def test_a_round_that_saw_nothing_or_is_stale_repeats_no_value(exporter: Exporter) -> None:
    exposition = Exposition()
    exposition.update(whole_snapshot(), TOTALS)
    exposition.body(TEXT, gzip=False, exporter=exporter)
    stale, _ = exposition.body(TEXT, gzip=False, is_stale=True, exporter=exporter)
    exposition.update_blind("default", TOTALS)
    blind, _ = exposition.body(TEXT, gzip=False, exporter=exporter)
    assert stale == blind
    expected = {"kminion_exporter_up": 0.0, "kminion_kafka_requests_sent_total": 0.0}
    shown = {name: value for (name, _), value in samples(families(blind, TEXT)).items()}
    assert shown == (expected if exporter is KMINION else {})


@each
def test_labels_are_kept_while_the_subjects_are_the_same(exporter: Exporter) -> None:
    exposition = Exposition()
    for seen in (whole_snapshot(), shared_snapshot(), snapshot(groups=(group("new"),))):
        exposition.update(seen, TOTALS)
        body, _ = exposition.body(OPENMETRICS, gzip=False, exporter=exporter)
        assert families(body, OPENMETRICS) == rendered(exporter, seen)


@each
@pytest.mark.parametrize("name", ['say "now"', "back\\slash", "line\nfeed", "漢字 🌊", "a,b=c"])
def test_names_come_back_as_they_are(exporter: Exporter, name: str) -> None:
    seen = whole_snapshot()
    groups = (replace(seen.groups[0], group_id=name), seen.groups[1])
    renamed = replace(seen, cluster=name, groups=groups)
    values = {value for _, labels in samples(rendered(exporter, renamed)) for _, value in labels}
    assert name in values
