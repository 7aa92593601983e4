"""Metrics as a service reads them: findings, gaps, its own stats, and secrets that stay secret."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

import pytest

from service.runtime.clock import monotonic, wait_until
from tests.integration.pages import Pages, answer, hangs, pages, sends
from tests.integration.serve.conftest import Serve
from tests.integration.serve.served import SEE_SECONDS, Served

pytestmark = pytest.mark.integration

TOKEN: Final = "a-token-for-pages-alone"  # noqa: S105 - of this test alone
PASSWORD: Final = "a-password-for-servers"  # noqa: S105 - of this test alone
RULE: Final = "record_error_rate_high"


def page_with(errors: int) -> bytes:
    line = 'kafka_producer_topic_record_error_total{client_id="payments",topic="orders"}'
    return answer(f"{line} {errors}\n".encode())


@pytest.fixture
def app() -> Iterator[Pages]:
    with pages(sends(page_with(500))) as made:
        yield made


@pytest.fixture
def silent() -> Iterator[Pages]:
    with pages(hangs()) as made:
        yield made


def scraping(*found: Pages, **more: str) -> dict[str, str]:
    """Return settings that read these pages every half second."""
    return {
        "SCRAPES__PAGES": ",".join(one.url for one in found),
        "SCRAPES__INTERVAL_SECONDS": "0.5",
        "SCRAPES__TIMEOUT_SECONDS": "3",
        **{f"SCRAPES__{name}": value for name, value in more.items()},
    }


def wait_up(served: Served, page: Pages, value: float) -> None:
    series = f'tidemark_scrape_up{{cluster="default",endpoint="{page.url}/metrics"}}'
    met = wait_until(lambda: served.metrics().get(series) == value, timeout_seconds=SEE_SECONDS)
    assert met, served.get("/metrics").text


def test_a_producer_whose_records_fail_is_found_and_a_silent_page_delays_nobody(
    serve: Serve, app: Pages, silent: Pages
) -> None:
    served = serve(settings=scraping(app, silent)).wait_ready()
    wait_up(served, app, 1)
    wait_up(served, silent, 0)
    seen = served.document("/api/v1/clusters/default?limit=1000")["items"]
    told = [(one["what"], one["cause"]) for one in seen if one["scope"] == "scrapes"]
    assert told == [(f"metrics of {silent.url}/metrics", "timeout")]
    states = {one["endpoint"]: one for one in served.status()["scrapes"]}
    assert states[f"{app.url}/metrics"]["is_fresh"]
    assert states[f"{silent.url}/metrics"]["errors"] == ["no whole answer within 3 s"]
    (away,) = served.events("endpoint_not_read")
    assert away["endpoint"] == f"{silent.url}/metrics"
    assert median(one["took_seconds"] for one in served.rounds()) < 3, "no round waits for it"

    assert served.findings(RULE) == []
    app.behave = sends(page_with(600))
    assert wait_until(lambda: bool(served.findings(RULE)), timeout_seconds=SEE_SECONDS)
    (finding,) = served.findings(RULE)
    labels = {"cluster": "default", "client": "payments", "topic": "orders"}
    assert (finding["labels"], finding["reason"]) == (labels, "records_fail")
    assert finding["evidence"]["record_errors_per_minute"] == 100

    listed = served.document("/api/v1/record-errors?failing=true")
    (client,) = listed["items"]
    assert (client["client_id"], client["topic"], client["cluster"]) == (
        "payments",
        "orders",
        "default",
    )
    assert (client["errors"]["total"], client["errors"]["last_rise"]["count"]) == (600, 100)
    assert client["retries"] is None, "the page has none, which is not zero"
    (away,) = listed["incomplete_endpoints"]
    assert (listed["complete"], away["endpoint"]) == (False, f"{silent.url}/metrics")
    series = "metric=client_record_error_rate&topic=orders&client_id=payments"

    def measured() -> list[float]:
        values = served.document(f"/api/v1/measured?{series}")["measured"]["values"]
        return [row["value"] for row in values if row["value"]]

    assert wait_until(lambda: bool(measured()), timeout_seconds=SEE_SECONDS), "history has it"

    began = monotonic()
    assert served.stop() == 0
    assert monotonic() - began < 30, "nobody waits for a page that hangs"


def test_credentials_go_where_they_belong_and_nowhere_else(
    serve: Serve, app: Pages, folder: Path
) -> None:
    secrets = {"BEARER_TOKEN": TOKEN, "PROMETHEUS_PASSWORD": PASSWORD}
    files = {}
    for name, secret in secrets.items():
        files[f"{name}_FILE"] = str(folder / name)
        (folder / name).write_text(f"{secret}\n", encoding="ascii")
    said = b'{"status":"error","error":"no, ' + PASSWORD.encode() + b'"}'
    with pages(sends(answer(said, status="400 No", media_type="application/json"))) as server:
        more = {"PROMETHEUS": server.url, "PROMETHEUS_USERNAME": "me", **files}
        served = serve(settings=scraping(app, **more)).wait_ready()
        wait_up(served, app, 1)
        assert wait_until(lambda: bool(served.events("endpoint_not_read")), timeout_seconds=180)
        (away,) = served.events("endpoint_not_read")
        assert away["why"] == "HTTP 400: the server says: no, ***"
        basic = base64.b64encode(f"me:{PASSWORD}".encode())
        assert all(TOKEN.encode() in one for one in app.requests)
        assert all(basic in one and TOKEN.encode() not in one for one in server.requests)
        shown = served.reported() + served.get("/metrics").text + str(served.status())
        shown += served.get("/api/v1/clusters/default?limit=1000").text
        assert TOKEN not in shown
        assert PASSWORD not in shown
        assert served.stop() == 0


def test_where_none_is_set_up_nothing_is_told_of_metrics(serve: Serve) -> None:
    served = serve().wait_ready()
    served.wait_rounds(2)
    assert served.status()["scrapes"] == []
    assert "tidemark_scrape" not in served.get("/metrics").text
    unknown = f'tidemark_verdicts{{cluster="default",rule="{RULE}",verdict="unknown"}}'
    assert served.metrics()[unknown] == 0
    assert served.stop() == 0
