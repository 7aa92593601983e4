"""A producer's page, and a real Prometheus that scrapes it, watched over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from rules.facts.gap import GapCause
from rules.facts.scrapes import (
    ClientReading,
    ProducerName,
    Scrapes,
    reporting_producers,
)
from service.observe.scrape_watch import ScrapeWatch
from service.runtime.clock import utc_now, wait_until
from tests.integration.pages import Pages, answer, pages, sends
from tests.integration.scrape_watching import watching
from tests.integration.serve.scraping import job, prometheus

pytestmark = pytest.mark.integration

SECONDS: Final = 180.0


def page_with(errors: int, *, client: str = "payments") -> bytes:
    labels = f'client_id="{client}",topic="orders"'
    return answer(
        b"# TYPE kafka_producer_topic_record_error_total counter\n"
        + f"kafka_producer_topic_record_error_total{{{labels}}} {errors}\n".encode()
        + f"kafka_producer_topic_record_retry_total{{{labels}}} {2 * errors}\n".encode()
    )


def wait_for(watch: ScrapeWatch, condition: Callable[[Scrapes], bool]) -> Scrapes:
    assert wait_until(lambda: condition(watch.scrapes()), timeout_seconds=SECONDS), watch.scrapes()
    return watch.scrapes()


def risen(reading: ClientReading) -> int:
    rises = () if reading.errors is None else reading.errors.rises
    return sum(one.count or 0 for one in rises)


@pytest.fixture
def app() -> Iterator[Pages]:
    """Give the page of one producer, 500 of whose records have failed before anybody observed."""
    with pages(sends(page_with(500))) as made:
        yield made


def test_a_page_and_a_prometheus_tell_of_the_same_producer(app: Pages, tmp_path: Path) -> None:
    began = utc_now()
    with ExitStack() as running:
        server = running.enter_context(prometheus(tmp_path, [job("apps", app.url)]))
        server.wait_value('kafka_producer_topic_record_error_total{job="apps"}', 500)
        watch = running.enter_context(watching(pages=app.url, prometheus=server.address))
        seen = wait_for(watch, lambda now: len(now.fresh) == 2 and len(now.clients) == 2)
        assert list(seen.gaps()) == []
        assert {one.errors.total for one in seen.clients if one.errors} == {500}
        app.behave = sends(page_with(503))
        seen = wait_for(watch, lambda now: [risen(one) for one in now.clients] == [3, 3])
        told = reporting_producers(seen, "orders", began - timedelta(minutes=2), utc_now())
        address = app.url.removeprefix("http://")
        assert told.reporting == {ProducerName(address, "payments")}
        assert told.only_raised == ProducerName(address, "payments")


def test_a_prometheus_that_has_several_clusters_is_asked_for_one(
    app: Pages, tmp_path: Path
) -> None:
    with pages(sends(page_with(7, client="other"))) as other, ExitStack() as running:
        jobs = [job("prod", app.url), job("test", other.url)]
        server = running.enter_context(prometheus(tmp_path, jobs))
        for name, value in (("prod", 500), ("test", 7)):
            server.wait_value(f'kafka_producer_topic_record_error_total{{job="{name}"}}', value)
        watch = running.enter_context(
            watching(prometheus=server.address, prometheus_matchers='job="prod"')
        )
        seen = wait_for(watch, lambda now: bool(now.fresh))
        assert {one.client_id for one in seen.clients} == {"payments"}


def test_matchers_that_are_none_are_told_in_the_servers_own_words(tmp_path: Path) -> None:
    with ExitStack() as running:
        server = running.enter_context(prometheus(tmp_path, []))
        watch = running.enter_context(
            watching(prometheus=server.address, prometheus_matchers="job=")
        )
        seen = wait_for(
            watch, lambda now: bool(list(now.gaps())) and now.endpoints[0].is_up is False
        )
        wait_for(watch, lambda now: any("the server says" in one.why for one in now.gaps()))
        assert seen.fresh == frozenset()


def test_a_process_that_was_started_again_counts_from_zero(app: Pages) -> None:
    with watching(pages=app.url) as watch:
        wait_for(watch, lambda now: bool(now.fresh))
        app.behave = sends(page_with(2))
        seen = wait_for(watch, lambda now: [risen(one) for one in now.clients] == [2])
        assert seen.clients[0].retries is not None
        assert seen.clients[0].retries.increase is not None


def test_a_producer_that_vanished_leaves_its_last_rise(app: Pages) -> None:
    with watching(pages=app.url) as watch:
        wait_for(watch, lambda now: bool(now.fresh))
        app.behave = sends(page_with(504))
        wait_for(watch, lambda now: [risen(one) for one in now.clients] == [4])
        app.behave = sends(page_with(0, client="other"))
        seen = wait_for(watch, lambda now: any(one.is_gone for one in now.clients))
        gone = next(one for one in seen.clients if one.is_gone)
        assert (gone.client_id, risen(gone)) == ("payments", 4)


def test_endpoints_that_files_list_come_and_go(app: Pages, tmp_path: Path) -> None:
    path = tmp_path / "targets.json"
    target = app.url.removeprefix("http://")
    path.write_text(f'[{{"targets": ["{target}"]}}]', encoding="utf-8")
    with watching(target_files=str(tmp_path / "*.json")) as watch:
        wait_for(watch, lambda now: bool(now.fresh))
        path.write_text("[", encoding="utf-8")
        broken = wait_for(watch, lambda now: bool(now.failures))
        assert len(broken.endpoints) == 1, "what it last said is kept"
        path.write_text("[]", encoding="utf-8")
        assert wait_for(watch, lambda now: not now.endpoints).failures == ()


def test_a_page_that_breaks_is_a_gap_and_the_others_go_on(app: Pages) -> None:
    html = answer(b"<html>", media_type="text/html")
    with (
        pages(sends(page_with(0, client="other"))) as other,
        watching(pages=f"{app.url},{other.url}") as watch,
    ):
        wait_for(watch, lambda now: len(now.fresh) == 2)
        app.behave = sends(html)
        seen = wait_for(watch, lambda now: len(now.fresh) == 1 or bool(list(now.gaps())))
        (gap,) = seen.gaps()
        assert (gap.cause, app.url in gap.what) == (GapCause.UNREADABLE, True)
        observations = len(other.requests)
        wait_for(watch, lambda _now: len(other.requests) > observations + 1)
        app.behave = sends(page_with(500))
        wait_for(watch, lambda now: len(now.fresh) == 2 and not list(now.gaps()))
