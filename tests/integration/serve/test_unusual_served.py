"""A real service scores its rounds by the published baselines."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.baseline.series import Metric, Series
from service.runtime.clock import utc_now, wait_until
from service.storage.baselines.publishing import publish
from tests.baseline_run_files import Usual, write_run, write_series
from tests.integration.serve.conftest import Serve
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.served import SEE_SECONDS, Served
from tests.integration.storage.conftest import MakeDatabase, embedded, new_database

__all__ = ["embedded", "new_database"]
pytestmark = pytest.mark.integration


def verdicts(served: Served, rule: str) -> dict[str, float]:
    """Return how many subjects of a rule have each verdict."""
    shown = served.metrics()
    head = f'tidemark_verdicts{{cluster="default",rule="{rule}",verdict='
    return {
        verdict: shown.get(f'{head}"{verdict}"}}', 0) for verdict in ("ok", "unknown", "breach")
    }


def test_rounds_are_judged_by_the_published_run(
    serve: Serve, kafka: Kafka, folder: Path, new_database: MakeDatabase
) -> None:
    engine = new_database()
    series = [
        Series(cluster="default", metric=metric, topic=topic, partition=0)
        for metric in (Metric.OPEN_SPAN, Metric.PRODUCE_RATE)
        for topic in (kafka.topic, "deleted")
    ]
    write_series(folder / "history", series)
    place = write_run(folder / "history", [Usual(series=each, level=100.0) for each in series])
    publish(engine, place, cluster="default", now=utc_now())
    url = engine.url.render_as_string(hide_password=False)
    served = serve(settings={"DATABASE__URL": url, "METRICS__BASELINE_METRICS": "open_span"})
    served.wait_ready()

    def is_scored() -> bool:
        # The topic and the cluster; the topic that is deleted is no subject.
        return verdicts(served, "open_span_unusual") == {"ok": 2, "unknown": 0, "breach": 0}

    assert wait_until(is_scored, timeout_seconds=SEE_SECONDS), (
        verdicts(served, "open_span_unusual"),
        served.reported(),
    )
    # Nothing is written: far out, and the hour before is not known yet.
    assert verdicts(served, "produce_rate_unusual") == {"ok": 1, "unknown": 1, "breach": 0}
    assert verdicts(served, "consumer_lag_unusual") == {"ok": 1, "unknown": 0, "breach": 0}
    detail = served.document(f"/api/v1/baselines/series/{series[0].series_id}")
    assert detail["scored"]["value"] == 0.0
    labels = f'{{cluster="default",metric="open_span",topic="{kafka.topic}",partition="0"}}'
    shown = served.metrics()
    assert shown[f"tidemark_baseline_value{labels}"] == 0.0
    assert shown[f"tidemark_baseline_score{labels}"] == 0.0, "a span that is short is not judged"
    assert not served.events("part_failed"), served.reported()
