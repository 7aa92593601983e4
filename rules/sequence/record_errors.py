"""Adds to each episode which clients of its topic had records fail, or sent them again, within its time.

That decides no verdict: who gave records up decides `record_error` alone (classify.py), and retries rise
both when a reordering heals and when a Java producer meets a real loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeAlias

from rules.facts.column import replace_fields
from rules.facts.episode_record_errors import (
    ClientRises,
    EpisodeRecordErrors,
    RecordRises,
    bound_clients,
    merge_clients,
)
from rules.facts.episodes import Episode
from rules.facts.last_observation import microseconds
from rules.facts.scrapes import (
    RISES_KEPT,
    ClientReading,
    Counted,
    Scrapes,
    rises_within,
    rising_by_topic,
    whole_until,
)
from rules.facts.times import EPOCH, MICROSECOND, iso_time_or_none
from rules.sequence.classify import FAILED_WITHIN
from rules.sequence.evidence_fields import ClientEvidence, SequenceEvidence
from rules.view import View

_WITHIN_US: Final = FAILED_WITHIN // MICROSECOND
_KEPT_US: Final = RISES_KEPT // MICROSECOND
Rising: TypeAlias = Mapping[str | None, Sequence[ClientReading]]
_NO_RISES: Final = RecordRises(count=None)  # of a counter that a client does not report


class ClientMetrics(StrEnum):
    """Whether clients that rose may be missing."""

    NOT_READ = "not_read"  # no endpoint is configured: nothing is known of clients
    INCOMPLETE = "incomplete"  # an endpoint did not answer at that time, or has not answered since
    COMPLETE = "complete"


def with_record_errors(view: View) -> View:
    """Return a view whose open episodes have the rises that this round's metrics show."""
    scrapes, sequences = view.snapshot.scrapes, view.memory.sequences
    if not scrapes.is_read or not sequences.open:
        return view
    rising, now_us = rising_by_topic(scrapes.clients), microseconds(view.now)
    episodes = {
        key: _observe(episode, scrapes, rising, now_us) for key, episode in sequences.open.items()
    }
    return replace(view, memory=replace(view.memory, sequences=replace(sequences, open=episodes)))


def record_error_evidence(episode: Episode) -> SequenceEvidence:
    """Return the clients that rose within the time of an episode, and whether more may have."""
    known = episode.record_errors
    _, until_us = time_of(episode)
    is_whole = known.whole_until_us is not None and known.whole_until_us >= until_us
    metrics = ClientMetrics.COMPLETE if is_whole else ClientMetrics.INCOMPLETE
    return {
        "record_errors": [_client_evidence(client) for client in known.clients],
        "record_error_clients": known.client_count,
        "client_metrics": str(metrics if known.is_read else ClientMetrics.NOT_READ),
        "client_metrics_until": iso_time_or_none(known.whole_until_us),
    }


def _client_evidence(client: ClientRises) -> ClientEvidence:
    errors, retries = client.errors or _NO_RISES, client.retries or _NO_RISES
    return {
        "client_id": client.client_id,
        "address": client.address,
        "topic": client.topic,
        "errors": errors.count,
        "errors_since": iso_time_or_none(errors.since_us),
        "errors_until": iso_time_or_none(errors.until_us),
        "retries": retries.count,
        "retries_since": iso_time_or_none(retries.since_us),
        "retries_until": iso_time_or_none(retries.until_us),
    }


def time_of(episode: Episode) -> tuple[int, int]:
    """Return from when to when clients' rises are attributed to an episode, inclusive."""
    return episode.first_seen_us - _WITHIN_US, episode.last_seen_us + _WITHIN_US


def _observe(episode: Episode, scrapes: Scrapes, rising: Rising, now_us: int) -> Episode:
    before, (since_us, until_us) = episode.record_errors, time_of(episode)
    if episode.name is None or now_us > until_us + _KEPT_US:
        return episode
    since, until = EPOCH + since_us * MICROSECOND, EPOCH + until_us * MICROSECOND
    readings = (*rising.get(episode.name.topic, ()), *rising.get(None, ()))
    risen = merge_clients((), _rises_of(readings, since, until))  # at several endpoints: one
    clients = merge_clients(before.clients, risen)
    whole_us = before.whole_until_us
    begin = since if whole_us is None else EPOCH + whole_us * MICROSECOND
    end = whole_until(scrapes, begin, until)
    after = EpisodeRecordErrors(
        is_read=True,
        clients=bound_clients(clients),
        client_count=max(before.client_count, len(clients)),
        whole_until_us=whole_us if end is None else microseconds(end),
    )
    return episode if after == before else replace_fields(episode, record_errors=after)


def _rises_of(
    readings: Iterable[ClientReading], since: datetime, until: datetime
) -> Iterator[ClientRises]:
    for reading in readings:
        client = ClientRises(
            address=reading.address,
            client_id=reading.client_id,
            topic=reading.topic,
            errors=_rises(reading.errors, since, until),
            retries=_rises(reading.retries, since, until),
        )
        if any(rises is not None and rises.has_risen for rises in (client.errors, client.retries)):
            yield client


def _rises(counted: Counted | None, since: datetime, until: datetime) -> RecordRises | None:
    if counted is None:
        return None
    rises = rises_within(counted, since, until)
    if not rises:
        return RecordRises()
    counts = [rise.count for rise in rises if rise.count is not None]
    return RecordRises(
        count=sum(counts) if counts else None,
        since_us=microseconds(min(rise.since for rise in rises)),
        until_us=microseconds(max(rise.until for rise in rises)),
    )
