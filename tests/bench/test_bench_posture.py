"""Posture of 10,000 topics: reading their settings, judging them, listing what is wrong; requests per broker.

Brokers are a pool without sockets that answers as Kafka does, so that the stats are our share of the
work; `tests/integration/test_posture.py` counts requests of real ones.
"""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from collectors import configs as collector
from collectors.configs import ConfigReader
from collectors.session import Limits, Session
from collectors.wire.api import API_VERSIONS, DESCRIBE_CONFIGS, Api
from collectors.wire.config_answers import BROKER_RESOURCE
from rules.catalogue.exactly_once_posture import judge
from rules.facts.config_keys import BROKER_KEYS, TOPIC_KEYS
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from rules.posture.all_checks import judge_posture
from rules.remembering import view_of_round
from rules.view import View
from service.api.posture.listing import Selection, count_checks, list_rows
from service.runtime.clock import monotonic
from tests.factories import BROKER_SETTINGS, TOPIC_SETTINGS, broker, partitions, snapshot
from tests.unit.collectors.scripted_pool import ScriptedPool
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

TOPICS = 10_000
DIFFERENT = 100  # sets of settings; one of a hundred topics has a single acknowledging replica
BROKERS = (broker(1), broker(2), broker(3))
REPEATS = 5
BAR_SECONDS = 2.0
BAR_REQUESTS = 2
VERSION = DESCRIBE_CONFIGS.newest


def settings_of(resource: Any) -> dict[str, str]:
    """Return the settings of a broker, or those of a topic by its number."""
    if resource.resource_type == BROKER_RESOURCE:
        return dict.fromkeys(BROKER_KEYS, "1") | BROKER_SETTINGS
    number = int(str(resource.resource_name).rpartition("-")[2]) % DIFFERENT
    own = {"retention.ms": str(604_800_000 + number)}
    own |= {"min.insync.replicas": "1"} if not number else {}
    return dict.fromkeys(TOPIC_KEYS, "1") | TOPIC_SETTINGS | own


def respond(_: Any, api: Api, request: Any) -> bytes:
    """Answer as a broker does; this is not measured."""
    if api is API_VERSIONS:
        return answer(
            API_VERSIONS, 4, error_code=ErrorCode.none, api_keys=(), throttle_time=NO_THROTTLE
        )
    entry = part(DESCRIBE_CONFIGS, VERSION, "DescribeConfigsResourceResult")
    result = part(DESCRIBE_CONFIGS, VERSION, "DescribeConfigsResult")
    results = tuple(
        result(
            error_code=ErrorCode.none,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=tuple(
                entry(
                    name=name, value=value, read_only=False, config_source=5, is_sensitive=False,
                    synonyms=(), documentation=None,
                )
                for name, value in settings_of(resource).items()
            ),
        )
        for resource in request.resources
    )  # fmt: skip
    return answer(DESCRIBE_CONFIGS, VERSION, throttle_time=NO_THROTTLE, results=results)


class TimedPool(ScriptedPool):
    """Counts the seconds that the brokers take, which are no part of ours."""

    seconds = 0.0

    def exchange(self, calls: Any, **options: Any) -> Any:
        """Answer, and note how long it took."""
        began = monotonic()
        answers = super().exchange(calls, **options)
        self.seconds += monotonic() - began
        return answers


def read(reader: ConfigReader, placed: Partitions) -> tuple[Snapshot, float, Counter[int], int]:
    """Read all settings; return the snapshot, our seconds, the requests by broker and the bytes."""
    pool = TimedPool(BROKERS, respond)
    session = Session(pool, Limits(round_seconds=600.0), brokers=BROKERS)
    began = monotonic()
    filled, configs = reader.collect(session, placed)
    took = monotonic() - began - pool.seconds
    sent = Counter(int(asked.broker_id) for asked, _, _ in pool.requests)
    assert session.gaps == []
    seen = snapshot(partitions=filled, configs=configs, brokers=BROKERS)
    return seen, took, sent, len(configs.topics.distinct)


def listed(view: View) -> int:
    """List what is wrong as the API and the command line do; return the number of lines."""
    posture, selection = judge_posture(view), Selection()
    count_checks(posture, selection)
    return len(list_rows(posture, selection))


def test_posture_of_ten_thousand_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MAX_AGE_SECONDS", 0.0)
    placed = partitions({f"topic-{number:05}": 1 for number in range(TOPICS)})
    reader = ConfigReader()
    seen, cold, sent, distinct = read(reader, placed)
    warm = [read(reader, placed)[1] for _ in range(REPEATS)]
    view = view_of_round(seen, None)
    began = monotonic()
    for _ in range(REPEATS):
        judge(view)
    judged = (monotonic() - began) / REPEATS
    began = monotonic()
    lines = listed(view)
    shown = monotonic() - began
    print(
        f"\n{TOPICS:,} topics with {distinct} different sets of settings, {len(BROKERS)} brokers"
        f"\n  read   first {cold:.3f} s, again median {statistics.median(warm):.3f} s, without the brokers' time"
        f"\n  judge  {judged * 1000:.1f} ms per round"
        f"\n  list   {shown:.3f} s, {lines} lines that are wrong or not known"
        f"\n  whole  {cold + judged + shown:.3f} s (bar: under {BAR_SECONDS} s)"
        f"\n  requests per broker and minute  {dict(sent)} (bar: {BAR_REQUESTS})"
    )
    assert max(sent.values()) <= BAR_REQUESTS
    assert distinct == DIFFERENT
