"""What the pages' examples are about: a topic `orders`, a group `billing`, and what happened to them.

All of it is made once, on the run's cluster and in the database of the one service that watches it. The
names and ids of the examples stand for those that came of it: tests/site/documented.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer
from sqlalchemy import Engine

from rules.baseline.series import Metric, Series
from service.runtime.clock import utc_now, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.layout import node_layout
from service.sandbox.faults import FaultOptions, Truth, begin_fault
from service.storage.baselines.publishing import publish
from service.storage.rounds.clusters import ClusterKey, register
from tests import loopback
from tests.application_lines import fatal
from tests.baseline_run_files import DAY, Usual, write_run, write_series
from tests.integration.clients import commit_offset, produce, transactional_producer
from tests.integration.notify.receiving import receiving
from tests.integration.serve.served import SEE_SECONDS, Document, Served, Start
from tests.integration.serve.test_losses import save_loss
from tests.log_lines import append_failed, thrown

TOPIC: Final = "orders"
GROUP: Final = "billing"
REWOUND: Final = "audit"
PLACE: Final = 3  # the partition of the examples
PARTITIONS: Final = 4
RECORDS: Final = 50
TRANSACTIONAL_ID: Final = "payments-7"
SPARE: Final = ("payments", "T")  # topics with a hanging transaction that an example ends
OTHER: Final = "refunds"  # a topic with one that stays
NIGHTS: Final = 3  # published baseline runs; examples go back twice
SERIES: Final = (
    Series(cluster="default", metric=Metric.READ_COMMITTED_LAG_SECONDS, topic=TOPIC, partition=PLACE, group=GROUP),
    Series(cluster="default", metric=Metric.PRODUCE_RATE, topic=TOPIC, partition=PLACE),
    Series(cluster="default", metric=Metric.ABORT_RATIO),
    Series(cluster="default", metric=Metric.OPEN_SPAN, topic=TOPIC, partition=PLACE),
    Series(cluster="default", metric=Metric.SEQUENCE_ERRORS, topic=TOPIC, partition=PLACE),
    Series(cluster="default", metric=Metric.RECORD_ERROR_RATE, topic=TOPIC),
)  # fmt: skip
LOG: Final = (
    append_failed(f"10MutW2kQReRXczn4GtumQ:{TOPIC}-{PLACE}"),
    thrown(
        f"Out of order sequence number for producer 2001 at offset 3 in partition {TOPIC}-{PLACE}:"
        " 27 (incoming seq. number), 2 (current end sequence number)"
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The service that watches the cluster, and what the words of the examples stand for."""

    served: Served
    values: dict[str, str]


@contextmanager
def facts(sandbox: Sandbox, engine: Engine, folder: Path) -> Iterator[Facts]:
    """Make what the examples are about, and a service that has seen all of it."""
    admin, servers = SandboxAdmin(sandbox.bootstrap_servers), sandbox.bootstrap_servers
    admin.create_topic(TOPIC, partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        produce(servers, TOPIC, RECORDS, partition=partition)
    for group in (REWOUND, f"{GROUP}-2"):
        commit_offset(servers, group, TOPIC, RECORDS)
    producer = transactional_producer(servers, TRANSACTIONAL_ID)
    producer.begin_transaction()
    producer.produce(TOPIC, b"open", partition=1)
    producer.flush(SEE_SECONDS)
    hanging = _hang(sandbox, TOPIC)
    _hang(sandbox, OTHER)
    spare = [_hang(sandbox, topic) for topic in SPARE]
    stored = _store(engine, sandbox.state.cluster_id, folder / "history")
    log = folder / "server.log"
    log.touch()
    with ExitStack() as stack:
        stack.enter_context(_member(servers))
        receiver = stack.enter_context(receiving())
        served = Served(
            _start(servers, engine, folder, log, receiver.address), folder / "serve.log"
        )
        stack.callback(served.stop)
        served.wait_ready().wait_rounds(2)
        log.write_text("\n".join(LOG) + "\n", encoding="utf-8")
        commit_offset(servers, REWOUND, TOPIC, 10)  # 40 offsets back
        _log(served)
        admin.create_topic(f"{TOPIC}-later")
        values = stored | _seen(served) | _of_transactions(hanging, spare)
        values["seen"] = served.status()["round"]["at"]
        values |= {"receiver": receiver.address, **_of_cluster(sandbox, served)}
        yield Facts(served=served, values=values)
    del producer


def _hang(sandbox: Sandbox, topic: str) -> Truth:
    fault = begin_fault("hanging-transaction", sandbox, FaultOptions(topic=topic))
    fault.leave()
    assert isinstance(fault.truth, Truth)
    return fault.truth


@contextmanager
def _member(servers: str) -> Iterator[None]:
    """Let a member own the topic's partitions in the group, and commit, for the length of a block."""
    config = {
        "bootstrap.servers": servers, "group.id": GROUP, "client.id": f"{GROUP}-1",
        "auto.offset.reset": "earliest", "max.poll.interval.ms": 3_600_000,
    }  # fmt: skip
    consumer = Consumer(config)
    try:
        consumer.subscribe([TOPIC])
        assert consumer.poll(SEE_SECONDS) is not None, "the group has read nothing"
        consumer.commit(asynchronous=False)
        yield
    finally:
        consumer.close()


def _store(engine: Engine, cluster_id: str, history: Path) -> dict[str, str]:
    """Store a proven loss, and publish baseline runs; return the ids of both."""
    cluster = register(engine, ClusterKey("default", cluster_id), utc_now())
    loss = save_loss(engine, cluster, TOPIC, PLACE)
    write_series(history, SERIES)
    for night in range(NIGHTS):
        usual = [Usual(series=series, level=100.0 * night) for series in SERIES]
        day = DAY + timedelta(days=night)
        place = write_run(history, usual, day=day, run_id=f"0a1b2c3d4e5f6071829{night}")
        publish(engine, place, cluster="default", now=utc_now())
    return {"loss": loss, "run": "0a1b2c3d4e5f60718291", "series": str(SERIES[0].series_id)}


def _start(servers: str, engine: Engine, folder: Path, log: Path, receiver: str) -> Start:
    source = {"path": str(log), "name": "kafka", "broker_id": 1}
    receivers = [{"name": name, "url": receiver} for name in ("pager", "local")]
    return Start(
        bootstrap=servers,
        directory=folder / "data",
        interval=1.25,  # six hours of samples, which an example names, are fewer than 20,000
        settings={
            "DATABASE__URL": engine.url.render_as_string(hide_password=False),
            "BROKER_LOGS__FILES": json.dumps([source]),
            "ALERTING__RECEIVERS": json.dumps(receivers),
            "ALERTING__DEFAULT_RECEIVER": "pager",
            "ALERTING__PRIVATE_RANGES": "127.0.0.0/8",
            "ALERTING__GROUP_WAIT_SECONDS": "0",
        },
    )


def _log(served: Served) -> None:
    """Send the line of an application that is fenced."""
    with loopback.client() as client:
        path = "/api/v1/ingest/application-log?application=payments"
        headers = {"Content-Type": "text/plain"}
        client.post(served.address + path, content=fatal(TRANSACTIONAL_ID), headers=headers)


def _seen(served: Served) -> dict[str, str]:
    """Wait until the service has what the examples name; return the ids."""
    return {
        "state": _item(served, "alerts?rule=transaction_hanging", topic=TOPIC)["fingerprint"],
        "other": _item(served, "alerts?rule=transaction_hanging", topic=OTHER)["fingerprint"],
        "event": _item(served, "alerts?rule=consumer_group_rewound")["fingerprint"],
        "sequence": _item(served, "sequences")["id"],
        "change_event": _item(served, "events")["id"],
        "application_error": _item(served, "application-errors")["id"],
        "delivery": str(_item(served, "deliveries?state=delivered")["id"]),
    }


def _item(served: Served, path: str, **labels: str) -> Document:
    """Wait for an item of a list of the API that has these labels; an alert's has to fire."""
    items: list[Document] = []

    def is_there() -> bool:
        items[:] = [
            item
            for item in served.document(f"/api/v1/{path}")["items"]
            if item.get("state") != "pending"
            and labels.items() <= item.get("labels", labels).items()
        ]
        return bool(items)

    assert wait_until(is_there, timeout_seconds=SEE_SECONDS), f"{path}: {served.reported()}"
    return items[0]


def _of_transactions(hanging: Truth, spare: list[Truth]) -> dict[str, str]:
    first, second = (str(truth.start_offset) for truth in spare)
    return {"hanging_start": str(hanging.start_offset), "spare_start": first, "t_start": second}


def _of_cluster(sandbox: Sandbox, served: Served) -> dict[str, Any]:
    return {
        "bootstrap": sandbox.bootstrap_servers,
        "sasl_bootstrap": sandbox.sasl_bootstrap_servers,
        "server": served.address,
        "example_topic": TOPIC,
        "example_partition": str(PLACE),
        "example_group": GROUP,
        "example_transactional_id": TRANSACTIONAL_ID,
        "log_dir": str(node_layout(sandbox.directory, 1).data),
    }
