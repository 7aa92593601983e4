"""Builds the whole service of `tidemark serve`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TextIO

from collectors.at_risk_observations import RiskReader
from collectors.wire.pool import Pool
from rules.baseline.unusual_values import UnusualValues
from rules.facts.scrapes import Scrapes
from rules.version import VERSION
from service.api.core.server import HttpServer, bind
from service.app.alerting import (
    Delivering,
    make_admin_services,
    make_alerting,
    make_delivering,
    sending_of,
)
from service.app.baseline_bands import baseline_band_watch
from service.app.cluster import cluster_reader
from service.app.feeds import application_errors, log_files, scrape_watch
from service.app.history import (
    history_jobs,
    make_history,
    measured_history,
    nightly_error,
    nightly_jobs,
    past_offsets,
)
from service.app.http import address_of, make_http_server
from service.app.jobs import JobParts, make_jobs
from service.app.live_scoring import ScoringParts, make_scoring
from service.app.log import library_messages, service_log
from service.app.serve import Parts, Service
from service.history.kept_ends import FILE as ENDS_FILE
from service.history.kept_ends import KeptEnds
from service.history.recorder import ignore_samples
from service.jobs.baseline_bands import BaselineBandWatch
from service.metrics.baseline_bands import BaselineBands
from service.metrics.exposition import Exposition
from service.metrics.process import process_stats, seldom_collected
from service.observe.application_errors import ApplicationErrors
from service.observe.cluster_reader import ClusterReader, Scope
from service.observe.log_files import LogFiles
from service.observe.log_inbox import LogInbox
from service.observe.risk_watch import RiskPace, RiskWatch
from service.observe.scrape_watch import ScrapeWatch
from service.observe.watch import Remembered, Watcher
from service.rounds.history import History
from service.rounds.latest import Latest, ServiceState
from service.rounds.persistence import RoundWriter
from service.rounds.pipeline import Pipeline
from service.rounds.round_log import RoundLog
from service.rounds.round_loop import ReportingLoop, RoundLoop
from service.runtime.clock import monotonic, utc_now
from service.runtime.data_directory import DataDirectory
from service.runtime.events import Event
from service.runtime.log import LineWriter, Log, QueuedWriter
from service.runtime.open_files import allow_files
from service.runtime.supervisor import Supervisor, Task
from service.runtime.threads import OneAtATime, take_short_turns
from service.settings import Settings
from service.settings.advice import warnings
from service.storage.database.engine import OWN_SECONDS, open_database
from service.storage.rounds.inbox import StoredInbox
from service.storage.rounds.store import PostgresStore


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """Objects that most parts share."""

    settings: Settings
    log: Log
    writer: QueuedWriter
    stop: asyncio.Event
    supervisor: Supervisor
    reader: ClusterReader
    risk: RiskWatch
    scrapes: ScrapeWatch | None  # None: no endpoint of metrics is set up
    store: PostgresStore
    history: History | None  # None: it is turned off
    scoring: ScoringParts | None  # None: no history is kept
    ends: KeptEnds
    jobs: JobParts
    bands: BaselineBandWatch | None  # None: no series are chosen
    inbox: LogInbox
    application_errors: ApplicationErrors
    log_files: LogFiles
    latest: Latest
    exposition: Exposition


@contextmanager
def open_service(
    settings: Settings, stream: TextIO, config_file: Path | None = None
) -> Iterator[Service]:
    """Take the data directory and the port, and build the service; nothing is queried yet.

    Args:
        settings: all of them.
        stream: the log.
        config_file: the file they were read from, for the programs of jobs.

    Raises:
        SettingsError: addresses, security settings or the HTTP address cannot be used.
        StoreError: the data directory is in use or cannot be written.
    """
    with ExitStack() as undo:
        undo.enter_context(seldom_collected())
        allow_files()
        take_short_turns()
        base = _base(settings, stream, config_file)
        undo.callback(base.writer.close)
        undo.callback(base.reader.close)
        undo.callback(base.risk.close)
        undo.callback(base.log_files.close)
        undo.enter_context(DataDirectory(settings.service.data_directory()))
        listener = bind(settings.http.host, settings.http.port)
        undo.callback(listener.close)
        undo.callback(base.store.close)
        undo.enter_context(library_messages(base.log))
        parts = _parts(base, listener)
        for advice in warnings(settings):
            base.log.warning(Event.SETTINGS_ADVICE, advice=advice)
        if base.latest.state.nightly_error is not None:
            base.log.warning(Event.BASELINE_RUNS_OFF, why=base.latest.state.nightly_error)
        yield Service(parts, drain_seconds=settings.service.drain_seconds)


def _parts(base: _Base, listener: socket.socket) -> Parts:
    """Build what `Service` runs; the tasks in the order in which they start."""
    delivering = make_delivering(
        base.settings.alerting,
        cluster=base.settings.kafka.name,
        store=base.store,
        latest=base.latest,
        supervisor=base.supervisor,
        stop=base.stop,
        log=base.log,
    )
    pipeline = _pipeline(base, delivering)
    return Parts(
        pipeline=pipeline,
        rounds=_rounds(base, pipeline),
        others=[
            Task(name="at_risk_observations", run=base.risk.run),
            *_optional_tasks(base),
            Task(name="time_lag", run=base.ends.run),
            Task(name="application_errors", run=base.application_errors.run),
            Task(name="alert_groups", run=ReportingLoop(pipeline, stop=base.stop).run),
            delivering.upkeep_task,
        ],
        finishing=[delivering.sending_task, base.jobs.task],
        http=_http_server(base, listener, delivering),
        supervisor=base.supervisor,
        stop=base.stop,
        log=base.log,
        close=lambda: _close(base),
        starting={"address": address_of(listener), **_starting_fields(base.settings)},
    )


def _http_server(base: _Base, listener: socket.socket, delivering: Delivering) -> HttpServer:
    return make_http_server(
        base.settings.http,
        listener,
        latest=base.latest,
        exposition=base.exposition,
        store=base.store,
        measured=measured_history(base.settings),
        past=past_offsets(base.settings),
        inbox=base.inbox,
        application_errors=base.application_errors,
        admin=make_admin_services(
            lambda: base.store.engine,
            base.settings.kafka.name,
            jobs=base.jobs.admin,
            sending=sending_of(base.settings.alerting),
            wake=delivering.deliverer.wake,
        ),
        log=base.log,
    )


def _base(settings: Settings, stream: TextIO, config_file: Path | None) -> _Base:
    writer = QueuedWriter(LineWriter(stream))
    log = service_log(settings.service, writer, is_screen=stream.isatty())
    stop = asyncio.Event()
    store = _store(settings, log)
    supervisor = Supervisor(log, stop, monotonic=monotonic)
    scoring = make_scoring(settings, store, supervisor, stop, log)
    return _Base(
        settings=settings,
        log=log,
        writer=writer,
        stop=stop,
        supervisor=supervisor,
        reader=cluster_reader(settings.kafka),
        risk=_risk(settings, stop),
        scrapes=scrape_watch(settings.scrapes, stop, log),
        store=store,
        history=make_history(
            settings, stop, log, ignore_samples if scoring is None else scoring.take
        ),
        scoring=scoring,
        ends=KeptEnds(settings.service.data_directory() / ENDS_FILE, stop=stop, log=log),
        jobs=make_jobs(
            store,
            cluster=settings.kafka.name,
            keep_findings=timedelta(days=settings.database.keep_transitions_days),
            supervisor=supervisor,
            stop=stop,
            log=log,
            more=lambda runs: [
                *history_jobs(settings, runs, log),
                *nightly_jobs(settings, config_file),
            ],
        ),
        bands=baseline_band_watch(settings.metrics, store, settings.kafka.name, stop, log),
        inbox=LogInbox(
            StoredInbox(lambda: store.engine, settings.kafka.name),
            max_waiting=settings.broker_logs.max_waiting_events,
            utc_now=utc_now,
            in_time=OneAtATime("log_inbox").call,
        ),
        application_errors=application_errors(settings, store, stop, log),
        log_files=log_files(settings.broker_logs),
        latest=Latest(_first_state(settings), monotonic=monotonic),
        exposition=Exposition(settings.metrics.limits()),
    )


def _first_state(settings: Settings) -> ServiceState:
    """Return the state before the first round."""
    return ServiceState(
        cluster=settings.kafka.name,
        version=VERSION,
        started_at=utc_now(),
        interval_seconds=settings.service.interval_seconds,
        nightly_error=nightly_error(settings),
    )


def _risk(settings: Settings, stop: asyncio.Event) -> RiskWatch:
    """Build it with connections of its own, because rounds use theirs at the same time."""
    return RiskWatch(
        RiskReader(Pool(settings.kafka.security())),
        RiskPace(
            interval_seconds=settings.service.risk_interval_seconds,
            request_seconds=settings.kafka.request_timeout_seconds,
            max_partitions=settings.service.max_risk_partitions,
        ),
        utc_now=utc_now,
        monotonic=monotonic,
        stop=stop,
    )


def _store(settings: Settings, log: Log) -> PostgresStore:
    secret = settings.database.url
    url = None if secret is None else secret.get_secret_value()
    directory = settings.service.data_directory()
    return PostgresStore(
        lambda: open_database(url, directory, wait_seconds=OWN_SECONDS),
        on_mended=lambda: log.warning(Event.DATABASE_RESTARTED, data_dir=str(directory)),
    )


def _pipeline(base: _Base, delivering: Delivering) -> Pipeline:
    settings = base.settings
    watcher = _watcher(base)
    base.ends.current = lambda: watcher.remembered.ends
    round_writer = RoundWriter(
        base.store,
        settings.kafka.name,
        monotonic=monotonic,
        waiting_rounds=settings.database.waiting_rounds,
        in_time=OneAtATime("store").call,
    )
    return Pipeline(
        watcher=watcher,
        round_writer=round_writer,
        exposition=base.exposition,
        latest=base.latest,
        monotonic=monotonic,
        process=lambda: process_stats(
            base.supervisor.restarts, base.writer.lost, base.jobs.runner.stats()
        ),
        risk=base.risk,
        endpoints=tuple if base.scrapes is None else base.scrapes.endpoints,
        alerting=make_alerting(settings.alerting, base.supervisor),
        deliveries=delivering.stats,
        on_stored=delivering.deliverer.wake,
        history=base.history,
        baseline=BaselineBands if base.bands is None else base.bands.bands,
        scoring=None if base.scoring is None else base.scoring.scoring,
    )


def _watcher(base: _Base) -> Watcher:
    settings = base.settings
    scope = Scope(
        topics=settings.service.topics,
        groups=settings.service.groups,
        transaction_log=settings.kafka.transaction_log,
        batch_samples=settings.kafka.batch_samples,
    )
    return Watcher(
        settings.kafka.name,
        base.reader,
        scope,
        utc_now=utc_now,
        monotonic=monotonic,
        remembered=Remembered(ends=base.ends.load()),
        attempt=base.supervisor.attempt,
        light_observations=base.risk.take,
        scrapes=Scrapes.unread if base.scrapes is None else base.scrapes.scrapes,
        feeds=[base.log_files, base.inbox],
        objectives=settings.lag.facts(),
        unusual=UnusualValues if base.scoring is None else base.scoring.scoring.latest,
    )


def _rounds(base: _Base, pipeline: Pipeline) -> Task:
    loop = RoundLoop(
        pipeline,
        RoundLog(base.log),
        interval_seconds=base.settings.service.interval_seconds,
        monotonic=monotonic,
        stop=base.stop,
    )
    return Task(name="rounds", run=loop.run, on_died=pipeline.note_died)


def _optional_tasks(base: _Base) -> Iterator[Task]:
    """Yield the tasks of the parts that are not turned off."""
    if base.scrapes is not None:
        yield Task(name="scrapes", run=base.scrapes.run)
    if base.history is not None:
        yield Task(name="history", run=base.history.write)
        yield Task(name="history_hours", run=base.history.ship)
    if base.scoring is not None:
        yield Task(name="day_judges", run=base.scoring.judges.run)
    if base.bands is not None:
        yield Task(name="baseline_bands", run=base.bands.run)


def _close(base: _Base) -> None:
    """Close everything that rounds write to; blocks."""
    try:
        base.ends.save()
        if base.history is not None:
            base.history.close()
    finally:
        base.store.close()


def _starting_fields(settings: Settings) -> dict[str, object]:
    return {
        "version": VERSION,
        "cluster": settings.kafka.name,
        "bootstrap_servers": settings.kafka.bootstrap_servers,
        "interval_seconds": settings.service.interval_seconds,
        "data_dir": str(settings.service.data_directory()),
        "database": "by URL" if settings.database.url else "embedded",
    }
