"""Builds what is read beside the cluster: logs of brokers and of applications, metrics of brokers and clients."""

from __future__ import annotations

import asyncio

from collectors.broker_log.disk import Disk
from collectors.broker_log.tail import LogTail, TailSource
from collectors.scrapes.listing import EndpointLists
from collectors.scrapes.scraping import HttpScraper, Limits, addresses_of, tls_context
from rules.facts.identity import BrokerId
from rules.facts.scrapes import EndpointKind
from service.observe.application_errors import ApplicationErrors
from service.observe.line_rate import LineRate, RateLimits
from service.observe.log_files import LogFiles
from service.observe.scrape_watch import ScrapePace, ScrapeWatch
from service.runtime.clock import monotonic, utc_now
from service.runtime.log import Log
from service.runtime.threads import OneAtATime, in_thread
from service.settings import BrokerLogSettings, LogFileSettings, ScrapeSettings, Settings
from service.settings.scrapes import read_broker_ids
from service.settings.values import parted
from service.storage.rounds.application_errors import StoredApplicationErrors
from service.storage.rounds.store import PostgresStore


def log_files(settings: BrokerLogSettings) -> LogFiles:
    """Build the feed of log files; nothing is opened yet, and without a pattern nothing ever is."""
    sources = [_source(file) for file in settings.files]
    tail = LogTail(Disk(), sources, monotonic=monotonic, read_existing=settings.read_existing)
    names = [source.name for source in sources]
    return LogFiles(tail, names, in_time=OneAtATime("log_files").call)


def application_errors(
    settings: Settings, store: PostgresStore, stop: asyncio.Event, log: Log
) -> ApplicationErrors:
    """Build what takes log lines of applications; nothing is loaded yet."""
    own = settings.application_logs
    limits = RateLimits(
        of_all=own.max_lines_per_minute, of_sender=own.max_lines_per_minute_of_sender
    )
    return ApplicationErrors(
        StoredApplicationErrors(lambda: store.engine, settings.kafka.name),
        LineRate(limits, monotonic),
        max_problems=own.max_problems,
        utc_now=utc_now,
        stop=stop,
        log=log,
    )


def _source(file: LogFileSettings) -> TailSource:
    return TailSource(
        name=file.source,
        pattern=file.path,
        broker_id=None if file.broker_id is None else BrokerId(file.broker_id),
        zone=file.zone,
    )


async def _resolve(host: str, port: int) -> list[str]:
    return await in_thread(lambda: addresses_of(host, port), name="scrape_resolve")


def _scraper(settings: ScrapeSettings) -> HttpScraper:
    return HttpScraper(
        limits=Limits(
            seconds=settings.timeout_seconds,
            max_body_bytes=settings.max_body_bytes,
            max_series=settings.max_series,
        ),
        credentials={
            EndpointKind.PAGE: settings.page_credentials(),
            EndpointKind.PROMETHEUS: settings.server_credentials(),
        },
        matchers=settings.prometheus_matchers,
        tls=tls_context(settings.ssl_ca_location),
        resolve=_resolve,
    )


def scrape_watch(settings: ScrapeSettings, stop: asyncio.Event, log: Log) -> ScrapeWatch | None:
    """Build it; None where no endpoint is configured. Nothing is scraped yet.

    Raises:
        SettingsError: the authority's certificate cannot be used.
    """
    if not settings.is_set:
        return None
    lists = EndpointLists(
        fixed=settings.endpoints(),
        patterns=parted(settings.target_files),
        limit=settings.max_endpoints,
    )
    return ScrapeWatch(
        _scraper(settings),
        lists.read,
        ScrapePace(
            interval_seconds=settings.interval_seconds,
            timeout_seconds=settings.timeout_seconds,
            max_series=settings.max_series,
        ),
        utc_now=utc_now,
        monotonic=monotonic,
        stop=stop,
        log=log,
        listed=lists.unread(),
        broker_ids=read_broker_ids(settings.broker_ids),
    )
