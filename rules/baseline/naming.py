"""How a series is written by people and in files: `read_committed_lag{topic="orders",partition="3",group="billing"}`.

That is Prometheus' notation. Where quotes are in the way, as in CSV, `read_committed_lag/orders/3/billing` is the
same: a topic has no slash in it, a group or a client id may.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from rules.baseline.series import Metric, Series

TOPIC, PARTITION, GROUP, CLIENT_ID = "topic", "partition", "group", "client_id"
_COMMIT: Final = (TOPIC, PARTITION, GROUP)
_PARTITION: Final = (TOPIC, PARTITION)
_CLIENT: Final = (TOPIC, CLIENT_ID)
LABELS: Final[Mapping[Metric, tuple[str, ...]]] = {
    Metric.READ_COMMITTED_LAG: _COMMIT,
    Metric.READ_UNCOMMITTED_LAG: _COMMIT,
    Metric.READ_COMMITTED_LAG_SECONDS: _COMMIT,
    Metric.READ_UNCOMMITTED_LAG_SECONDS: _COMMIT,
    Metric.CONSUME_RATE: _COMMIT,
    Metric.PRODUCE_RATE: _PARTITION,
    Metric.OPEN_SPAN: _PARTITION,
    Metric.UNREPLICATED_SPAN: _PARTITION,
    Metric.SEQUENCE_ERRORS: _PARTITION,
    Metric.RECORD_ERROR_RATE: (TOPIC,),
    Metric.ABORT_RATIO: (),
    Metric.CLIENT_RECORD_ERROR_RATE: _CLIENT,
    Metric.CLIENT_RECORD_RETRY_RATE: _CLIENT,
}
MOST_PARTITION: Final = 2**31 - 1
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_PROMETHEUS: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\{(.*)\}\s*)?", re.DOTALL)
_LABEL: Final = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\\n]|\\.)*)"\s*(,|$)', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


class Unnamed(StrEnum):
    """Why a text names no series."""

    SYNTAX = "series_syntax"
    METRIC = "unknown_metric"
    LABELS = "wrong_labels"  # others than the metric has, or a value that none can have


class SeriesNameError(ValueError):
    """A text names no series."""

    def __init__(self, reason: Unnamed) -> None:
        super().__init__(reason.value)
        self.reason = reason


def name_of(series: Series) -> str:
    """Return the name of a series, without its cluster, in Prometheus' notation."""
    values = {
        TOPIC: series.topic,
        PARTITION: series.partition,
        GROUP: series.group,
        CLIENT_ID: series.client_id,
    }
    labels = [f'{label}="{_escaped(str(values[label]))}"' for label in LABELS[series.metric]]
    return f"{series.metric.value}{{{','.join(labels)}}}" if labels else series.metric.value


def parse_name(text: str, cluster: str) -> Series:
    """Return the series of a cluster that a text names.

    Raises:
        SeriesNameError: it names none.
    """
    metric, labels = _slashed(text) if "/" in text.partition("{")[0] else _labelled(text)
    if metric not in set(Metric):
        raise SeriesNameError(Unnamed.METRIC)
    known = Metric(metric)
    if set(labels) != set(LABELS[known]):
        raise SeriesNameError(Unnamed.LABELS)
    topic, partition, group = labels.get(TOPIC), labels.get(PARTITION), labels.get(GROUP)
    if (
        (topic is not None and not _TOPIC.fullmatch(topic))
        or (partition is not None and not _is_partition(partition))
        or "" in (group, labels.get(CLIENT_ID))
    ):
        raise SeriesNameError(Unnamed.LABELS)
    number = None if partition is None else int(partition)
    return Series(
        cluster=cluster,
        metric=known,
        topic=topic,
        partition=number,
        group=group,
        client_id=labels.get(CLIENT_ID),
    )


def _is_partition(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= MOST_PARTITION


def _slashed(text: str) -> tuple[str, dict[str, str]]:
    metric, _, rest = text.strip().partition("/")
    labels = LABELS[Metric(metric)] if metric in set(Metric) else _COMMIT
    if labels == _CLIENT:
        return metric, dict(zip(_CLIENT, rest.split("/", 1), strict=False))
    values = rest.split("/", 2)
    return metric, dict(zip(_COMMIT[: len(values)], values, strict=True))


def _labelled(text: str) -> tuple[str, dict[str, str]]:
    matched = _PROMETHEUS.fullmatch(text)
    if matched is None:
        raise SeriesNameError(Unnamed.SYNTAX)
    metric, inside = matched[1], (matched[2] or "").strip().removesuffix(",")
    labels: dict[str, str] = {}
    place = 0
    while place < len(inside):
        label = _LABEL.match(inside, place)
        if label is None or label[1] in labels:
            raise SeriesNameError(Unnamed.SYNTAX)
        labels[label[1]] = _ESCAPED.sub(_unescaped, label[2])
        place = label.end()
    return metric, labels


def _unescaped(escaped: re.Match[str]) -> str:
    return "\n" if escaped[1] == "n" else escaped[1]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
