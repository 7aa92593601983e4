"""Drop-in pages as a real Prometheus scrapes them: public dashboards get answers, promtool reads them."""

from __future__ import annotations

import subprocess
from typing import Final

from service.metrics.dropin import EXPORTERS, KMINION
from service.metrics.dropin.exporter import Exporter
from tests.integration.serve.dashboards import NAMESPACE, NOT_ANSWERED, QUERIES, matchers
from tests.integration.serve.scraping import Job, Prometheus, job, program
from tests.integration.serve.served import Served
from tests.unit.service.metrics.dropin.sources import SOURCES

JOBS: Final = tuple(exporter.name for exporter in EXPORTERS)
# What promtool advises against names that are others'; its exit status is then 3.
ADVICE: Final = {
    "kafka_exporter": {
        "kafka_consumergroup_current_offset_sum": "_sum",
        "kafka_consumergroup_lag_sum": "_sum",
    },
    "kminion": {
        "kminion_kafka_consumer_group_topic_offset_sum": "_sum",
        "kminion_kafka_topic_high_water_mark_sum": "_sum",
        "kminion_kafka_topic_low_water_mark_sum": "_sum",
    },
    "kafka_lag_exporter": {"kafka_consumergroup_poll_time_ms": "unit"},
}


def drop_in_jobs(address: str) -> list[Job]:
    """Return a scrape job per exporter, with the label that an orchestrator adds."""
    added = [{"target_label": "namespace", "replacement": NAMESPACE}]
    return [
        job(name, address, metrics_path=f"/metrics/{name}", relabel_configs=added) for name in JOBS
    ]


def check_dashboards(server: Prometheus, served: Served) -> None:
    """Every expression of a public dashboard has an answer, with the labels that it joins by."""
    instance = served.address.removeprefix("http://")
    for exporter in EXPORTERS:
        for query in QUERIES[exporter.name]:
            expression = query.expression(matchers(instance))
            server.wait_value(f"count({expression}) > bool 0", 1)
            if query.by is not None:
                expected = {*query.by, "value"}
                for series in server.query(expression):
                    assert set(series) == expected, expression
    for name in NOT_ANSWERED:
        assert name in KMINION.missing or name not in SOURCES["kminion"]
        assert server.query(name) == []


def check_promtool(served: Served) -> None:
    """Have promtool read every page; it has no more to say than that others chose the names."""
    for exporter in EXPORTERS:
        page = served.get(f"/metrics/{exporter.name}").content
        done = subprocess.run(
            [program("promtool"), "check", "metrics"], input=page, capture_output=True, check=False
        )
        assert done.returncode == 3, done.stderr
        assert done.stdout == b""
        check_advice(exporter, done.stderr.decode())


def check_advice(exporter: Exporter, printed: str) -> None:
    advice = dict(line.split(" ", 1) for line in printed.strip().splitlines())
    assert set(advice) == set(ADVICE[exporter.name]), printed
    for name, about in ADVICE[exporter.name].items():
        assert about in advice[name], printed
