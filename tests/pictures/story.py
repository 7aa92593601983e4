"""Plays the story of `make demo` while a real Prometheus scrapes it, and records what every panel then shows.

Beside the story runs a topic of the simulated weeks, so that there is something to compare with what
is usual.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click
from sqlalchemy import Engine

from dashboards.files import read_files
from service.runtime import clock
from service.sandbox.demo.acts import ACTS
from service.sandbox.demo.api import Api
from service.sandbox.demo.simulated_runs import SEED, SERIES, ZONES
from service.sandbox.demo.stage import CLUSTER, Stage, open_stage
from service.sandbox.demo.story import Story
from service.sandbox.simulator.fleet import Pipeline, draw_fleet
from service.sandbox.workloads.consumer import GroupConsumer
from service.sandbox.workloads.producer import IdempotentProducer
from service.storage.database import reading_role
from service.storage.database.engine import make_engine, open_database
from service.terminal.exit_codes import ExitCode
from tests.integration.serve.scraping import job, prometheus
from tests.pictures.answers import FOLDER, encode, path_of
from tests.pictures.recording import SCRAPE_SECONDS, Sources, Window, record

ROLE: Final = "grafana"
SETTLE_SECONDS: Final = 4 * SCRAPE_SECONDS  # after the last act: Prometheus has seen its end


def main() -> int:
    """Play the story and record it; the exit code is that of a demo."""
    with TemporaryDirectory(prefix="tidemark-pictures-") as name:
        was_seen = record_story(Path(name))
    return ExitCode.OK if was_seen else ExitCode.INCOMPLETE


def record_story(folder: Path) -> bool:
    """Play the story below a folder and write the answers; True if every step was seen."""
    with ExitStack() as running:
        stage = running.enter_context(open_stage(folder, click.echo))
        jobs = [job("tidemark", stage.address)]
        server = running.enter_context(prometheus(folder, jobs))
        usual = draw_fleet(SEED, SERIES, ZONES)[0]
        run_usual_load(stage, usual)
        start = _now()
        api = running.enter_context(Api(stage.address))
        was_seen = Story(stage, api, threading.Event(), ACTS).play()
        threading.Event().wait(SETTLE_SECONDS)
        window = Window(start=start, end=_now())
        with role_of(folder / "tidemark") as engine:
            record_all(Sources(prometheus=server, postgres=engine), window, usual)
    return was_seen


def run_usual_load(stage: Stage, usual: Pipeline) -> None:
    """Write and read a topic of the simulated weeks about as much as it was in them."""
    stage.admin.create_topic(usual.topic, partitions=usual.partitions)
    rate = usual.rate * usual.partitions
    stage.loads.enter_context(IdempotentProducer(stage.servers, topic=usual.topic, rate=rate))
    stage.loads.enter_context(GroupConsumer(stage.servers, topic=usual.topic, group=usual.group))


def record_all(sources: Sources, window: Window, usual: Pipeline) -> None:
    """Write the answers of every dashboard."""
    chosen = {
        "cluster": CLUSTER,
        "topic": usual.topic,
        "partition": "0",
        "group": usual.group,
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    for dashboard in read_files({}):
        answers = record(dashboard, sources, window, chosen)
        path_of(dashboard.uid).write_text(encode(answers), encoding="utf-8")


@contextmanager
def role_of(data: Path) -> Iterator[Engine]:
    """Connect to a service's database as the role of dashboards, which is made."""
    database = open_database(None, data, attach=True)
    try:
        with database.engine.begin() as connection:
            password = database.engine.url.password
            connection.exec_driver_sql(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{password}'")
        reading_role.grant_views(database.engine, ROLE)
        reader = make_engine(database.engine.url.set(username=ROLE))
        try:
            yield reader
        finally:
            reader.dispose()
    finally:
        database.close()


def _now() -> float:
    return clock.utc_now().timestamp()


if __name__ == "__main__":
    sys.exit(main())
