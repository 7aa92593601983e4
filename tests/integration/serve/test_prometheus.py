"""A real Prometheus scrapes a service that watches a cluster with everything on it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient

from rules import names
from rules.facts.gap import GapCause
from rules.names import METRICS, Metric
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.state import CONTROLLER_ID
from service.sandbox.workloads.standard import WorkloadPlan, standard_workload
from service.sandbox.workloads.transactions import OpenTransaction
from tests.integration.clients import produce, produce_in_transaction, transactional_producer
from tests.integration.failing_producer import CLIENT, RATE, failing_producer
from tests.integration.sandbox_logs import log_files_of
from tests.integration.serve import busy_panels, drop_ins
from tests.integration.serve.claims import assert_shown
from tests.integration.serve.conftest import Serve
from tests.integration.serve.kafka import RECORDS, Kafka
from tests.integration.serve.recorded_panels import check_recorded, write_quick_rules
from tests.integration.serve.scraping import (
    Prometheus,
    job,
    plain_text_of,
    program,
    prometheus,
)
from tests.integration.serve.served import Served
from tests.unit.dashboards.given_dashboards import every_expression, with_values

pytestmark = pytest.mark.integration

TOKEN: Final = "a-token-for-scrapers-only"  # noqa: S105 - of this test alone
JOBS: Final = ("openmetrics", "text")
COMPLAINTS: Final = (
    "prometheus_target_scrapes_exceeded_sample_limit_total",
    "prometheus_target_scrapes_sample_duplicate_timestamp_total",
    "prometheus_target_scrapes_sample_out_of_bounds_total",
    "prometheus_target_scrapes_sample_out_of_order_total",
    "prometheus_target_scrape_pool_exceeded_label_limits_total",
)
# Present, and 0, for the sandbox cannot bring them about: nobody sets the machine's clock, its log
# can be written, its database takes everything, no task dies, and 4.x brokers do not repeat a commit.
ONLY_AT_RISK: Final = names.AT_RISK_OBSERVATION_DURATION  # nobody observations before
# A healthy cluster has none.
ONLY_WHEN_BROKEN: Final = (ONLY_AT_RISK, names.ALERTS, names.REPLICA_LOG_END_OFFSET)
ONLY_ELSEWHERE: Final = names.BASELINE_METRICS  # no baseline run is here: api/test_baselines.py
ONLY_AFTER_A_RUN: Final = (names.JOB_DURATION, names.JOB_LAST_SUCCESS)  # no job is due so soon
RECEIVER: Final = {"name": "pager", "url": "http://127.0.0.1:9/nobody-listens"}
NEVER_HERE: Final = (
    names.CLOCK_STEPS,
    names.LOG_LINES_LOST,
    names.STORE_LOST,
    names.STORE_REJECTED,
    names.STORE_WAITING,
    names.TASK_RESTARTS,
    names.DUPLICATE_COMMITS,
)


@pytest.fixture
def busy_cluster(kafka: Kafka, faults: Sandbox) -> Iterator[Sandbox]:
    """Load the cluster: groups that lag, aborts, an open transaction, a lag of only a marker."""
    plan = WorkloadPlan(topic=kafka.topic, rate=50, slow_rate=5, abort_every=5)
    with ExitStack() as running:
        running.enter_context(standard_workload(faults, plan))
        held, done = f"{kafka.topic}-held", f"{kafka.topic}-done"
        kafka.admin.create_topic(held)
        kafka.admin.create_topic(done, assignment=[[3]])
        running.enter_context(OpenTransaction(kafka.bootstrap, topic=held, timeout_ms=300_000))
        producer = transactional_producer(kafka.bootstrap, done)
        produce_in_transaction(producer, done, RECORDS)
        producer.commit_transaction()
        Kafka(kafka.bootstrap, kafka.admin, done).commit("marker", RECORDS)
        # A broker counts an error when it has answered with one.
        AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(f"{held}-not", timeout=180)
        yield faults


@pytest.fixture
def failing_page(kafka: Kafka, busy_cluster: Sandbox, folder: Path) -> Iterator[str]:
    """Give the metrics page of a Java producer all of whose records fail."""
    topic = f"{kafka.topic}-rejected"
    producer, address = failing_producer(busy_cluster, kafka.admin, topic, folder)
    with producer:
        yield f"http://{address}/metrics"


@contextmanager
def scraped(served: Served, folder: Path) -> Iterator[Prometheus]:
    """Scrape a service in both forms and under the names of others, each in a job of its own."""
    with plain_text_of(served.address) as relay:
        jobs = [job("openmetrics", served.address), job("text", relay)]
        jobs += drop_ins.drop_in_jobs(served.address)
        with prometheus(folder, jobs, rules=[write_quick_rules(folder)]) as server:
            yield server


def series_of(server: Prometheus, metric: Metric, job_name: str) -> list[dict[str, object]]:
    return [one for name in metric.series for one in server.query(f'{name}{{job="{job_name}"}}')]


def check_labels(server: Prometheus, metric: Metric, job_name: str) -> None:
    found = series_of(server, metric, job_name)
    assert found, f"{metric.name} has no series"
    expected = {"job", "instance", "value", *metric.labels}
    for one in found:
        own = {"__name__", "le"} if str(one["__name__"]).endswith("_bucket") else {"__name__"}
        assert set(one) == expected | own, metric.name
    assert {one["__name__"] for one in found} == set(metric.series)


def check_no_complaints(server: Prometheus) -> None:
    """Nothing of what Prometheus counts about bad pages has happened."""
    for counter in COMPLAINTS:
        server.wait_value(counter, 0)  # it scrapes itself too, now and then
    for name in (*JOBS, *drop_ins.JOBS):
        # One question: two might be about two scrapes.
        scraped, kept = "scrape_samples_scraped", "scrape_samples_post_metric_relabeling"
        assert server.values(f'{scraped}{{job="{name}"}} - {kept}{{job="{name}"}}') == [0]
        assert server.values(f'min_over_time(up{{job="{name}"}}[5m])') == [1]
    assert set(server.last_errors().values()) == {""}


@pytest.mark.smoke
def test_prometheus_has_every_metric_with_its_labels_in_both_forms(
    serve: Serve, kafka: Kafka, busy_cluster: Sandbox, failing_page: str, folder: Path
) -> None:
    pages = [failing_page, *map(busy_cluster.metrics_url, (1, 2, 3, CONTROLLER_ID))]
    sources = {
        "SCRAPES__PAGES": ",".join(pages),
        "SCRAPES__INTERVAL_SECONDS": "5",
        "BROKER_LOGS__FILES": json.dumps(log_files_of(busy_cluster)),
        "BROKER_LOGS__READ_EXISTING": "true",
        "ALERTING__RECEIVERS": json.dumps([RECEIVER]),
        "ALERTING__DEFAULT_RECEIVER": RECEIVER["name"],
        "ALERTING__PRIVATE_RANGES": "127.0.0.0/8",
    }
    served = serve(interval=1, settings=sources).wait_ready()
    with scraped(served, folder) as server:
        for name in JOBS:
            server.wait_value(f'up{{job="{name}"}}', 1)
            marker = (
                f'{names.NOTHING_TO_READ.name}{{job="{name}",group="{kafka.topic}-done-marker"}}'
            )
            server.wait_value(marker, 1)
            held = f'{names.OPEN_SPAN.name}{{job="{name}",topic="{kafka.topic}-held"}}'
            server.wait_value(f"{held} > bool 0", 1)
            check_transactions(server, kafka, name)
            on_pages = (names.BROKER_REQUEST_ERRORS, names.UNCLEAN_ELECTIONS, names.RECORD_ERRORS)
            for counter in on_pages:  # that are scraped now and then
                counted = f'{counter.name}{{job="{name}"}}'
                server.wait_value(f"count({counted}) > bool 0", 1)
        for name in JOBS:
            for metric in METRICS:
                if metric not in (*ONLY_WHEN_BROKEN, *ONLY_AFTER_A_RUN, *ONLY_ELSEWHERE):
                    check_labels(server, metric, name)
            for metric in NEVER_HERE:
                values = {one["value"] for one in series_of(server, metric, name)}
                assert values == {0}, metric.name
        check_values(server, kafka)
        drop_ins.check_dashboards(server, served)
        drop_ins.check_promtool(served)
        check_no_complaints(server)
        in_health = unanswered(server, kafka)
        check_a_broken_cluster(server, kafka, busy_cluster)
        check_recorded(server)
        check_no_complaints(server)
        check_jobs(server, served)
        never = in_health & unanswered(server, kafka)
        assert sorted(never) == sorted(busy_panels.NOT_ANSWERED)
        check_promtool(served)
    assert served.stop() == 0


def unanswered(server: Prometheus, kafka: Kafka) -> set[str]:
    """Return the queries of our own dashboards to which there is no answer now."""
    one = {
        "cluster": "default",
        "topic": f"{kafka.topic}-done",
        "partition": "0",
        "group": f"{kafka.topic}-done-marker",
    }
    return {
        name
        for name, expression in every_expression()
        if not server.query(with_values(expression, one))
    }


def check_values(server: Prometheus, kafka: Kafka) -> None:
    """The panels show a group that has stopped, and the producer whose records fail."""
    series = f'{names.HIGH_WATERMARK.name}{{topic="{kafka.topic}",partition="0"}}'
    [end] = server.values(f"max({series})")
    kafka.commit("stopped", int(end))
    stopped = busy_panels.StoppedGroup(group=kafka.group("stopped"), topic=kafka.topic)
    assert_shown(server, busy_panels.STOPPED, stopped)
    failing = busy_panels.FailingProducer(
        client=CLIENT, topic=f"{kafka.topic}-rejected", rate=RATE * len(JOBS)
    )
    assert_shown(server, busy_panels.FAILING, failing)


def check_transactions(server: Prometheus, kafka: Kafka, job_name: str) -> None:
    """What is open and what ended is seen, and Prometheus can work with the histogram."""
    own = f'job="{job_name}"'
    age = f'{names.LAST_STABLE_OFFSET_AGE.name}{{{own},topic="{kafka.topic}-held"}}'
    server.wait_value(f"{age} > bool 1", 1)
    is_open = f'{{{own},class="open"}}'
    server.wait_value(f"{names.OPEN_TRANSACTIONS.name}{is_open} >= bool 1", 1)
    server.wait_value(f"{names.OLDEST_TRANSACTION.name}{is_open} > bool 1", 1)
    for ended in (names.TRANSACTION_COMMITS, names.TRANSACTION_ABORTS):
        server.wait_value(f"{ended.name}{{{own}}} > bool 0", 1)
    histograms = (names.TRANSACTION_DURATION, names.MARKER_DURATION)
    for metric, outcome in product(histograms, ("committed", "aborted")):
        of_outcome = f'{metric.series[0]}{{{own},outcome="{outcome}"}}'
        server.wait_value(f"histogram_quantile(0.5, {of_outcome}) < bool 60", 1)
        bounds = [*map(repr, names.DURATION_BUCKETS), "+Inf"]
        assert {one["le"] for one in server.query(of_outcome)} == set(bounds)


def check_a_broken_cluster(server: Prometheus, kafka: Kafka, cluster: Sandbox) -> None:
    """A killed broker is seen as gaps, and a partition that it alone had as one without leader."""
    shared = f"{kafka.topic}-shared"
    kafka.admin.create_topic(shared, assignment=[[1, 3]], configs={"min.insync.replicas": "2"})
    cluster.kill(3)
    produce(cluster.broker_address(1), shared, RECORDS, acks="1")
    single = f'topic="{kafka.topic}-done"'
    for name in JOBS:
        server.wait_value(f'{names.HAS_LEADER.name}{{job="{name}",{single}}}', 0)
        server.wait_value(f'sum(max_over_time({names.GAPS.name}{{job="{name}"}}[5m])) > bool 0', 1)
        offline = f'{names.OPEN_FINDINGS.name}{{job="{name}",rule="partition_offline"}}'
        server.wait_value(offline, 1)
        breach = f'{names.VERDICTS.name}{{job="{name}",rule="partition_offline",verdict="breach"}}'
        server.wait_value(breach, 1)
        # What was known of it is not repeated as news.
        server.wait_value(f'absent({names.HIGH_WATERMARK.name}{{job="{name}",{single}}})', 1)
        causes = {one["cause"] for one in series_of(server, names.GAPS, name)}
        assert causes == set(GapCause)
        observed = f'{names.AT_RISK_PARTITIONS.name}{{job="{name}",state="observed"}}'
        server.wait_value(f"{observed} > bool 0", 1)
        server.wait_value(f'{ONLY_AT_RISK.name}{{job="{name}"}} > bool 0', 1)
        fires = f'{names.ALERTS.name}{{job="{name}",rule="partition_offline",state="firing"}}'
        server.wait_value(f"{fires} > bool 0", 1)
        for metric in ONLY_WHEN_BROKEN:
            check_labels(server, metric, name)
    killed = busy_panels.KilledBroker(
        alone=f"{kafka.topic}-done", shared=shared, records=RECORDS, brokers=2, jobs=len(JOBS)
    )
    assert_shown(server, busy_panels.KILLED, killed)


def check_jobs(server: Prometheus, served: Served) -> None:
    """A job that a person has run tells when it went well, and how long it took."""
    assert served.post("/api/v1/jobs/inbox_retention/run").status_code == 202
    for name in JOBS:
        ran = f'{names.JOB_LAST_SUCCESS.name}{{job="{name}",job_name="inbox_retention"}}'
        server.wait_value(f"{ran} > bool 0", 1)
        for metric in ONLY_AFTER_A_RUN:
            check_labels(server, metric, name)


def check_promtool(served: Served) -> None:
    page = served.get("/metrics").content
    done = subprocess.run(
        [program("promtool"), "check", "metrics"], input=page, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_token_is_needed_where_others_can_reach_the_service(serve: Serve, folder: Path) -> None:
    secret = folder / "token"
    secret.write_text(TOKEN, encoding="ascii")
    everywhere = "0.0.0.0"  # noqa: S104 - what the test is about
    served = serve(host=everywhere, settings={"HTTP__TOKEN_FILE": str(secret)}).wait_ready()
    wrong = folder / "wrong"
    wrong.write_text(TOKEN + "x", encoding="ascii")
    jobs = [
        job("with", served.address, authorization={"credentials_file": str(secret)}),
        job("wrong", served.address, authorization={"credentials_file": str(wrong)}),
        job("without", served.address),
    ]
    with prometheus(folder, jobs) as server:
        server.wait_value('up{job="with"}', 1)
        server.wait_value('up{job="wrong"}', 0)
        server.wait_value('up{job="without"}', 0)
        errors = server.last_errors()
        assert errors["with"] == ""
        for name in ("wrong", "without"):
            assert "401" in errors[name]
    assert TOKEN not in served.reported()
    assert served.stop() == 0


PROMETHEUS_3: Final = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
ACCEPTED: Final = {
    PROMETHEUS_3: "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8",
    "text/plain;version=1.0.0;escaping=allow-utf-8": (
        "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8"
    ),
    "application/openmetrics-text;version=1.0.0": (
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    ),
    "text/plain;version=0.0.4": "text/plain; version=0.0.4; charset=utf-8",
    "*/*": "text/plain; version=0.0.4; charset=utf-8",
}


def test_each_accept_header_gets_the_content_type_that_its_scraper_knows(serve: Serve) -> None:
    served = serve(interval=60).wait_ready()  # one page for all
    bodies = {}
    for accept, content_type in ACCEPTED.items():
        answer = served.get("/metrics", accept=accept)
        assert answer.headers["content-type"] == content_type
        assert answer.text.endswith("# EOF\n") == ("openmetrics" in content_type)
        bodies[content_type.partition(";")[0], accept] = answer.text
    texts = {body for (kind, _), body in bodies.items() if kind == "text/plain"}
    assert len(texts) == 1
    assert served.stop() == 0
