"""Which series of an exporter are series of history: taken from what the drop-in pages declare of its names.

Burrow has no such page; its names are those of linkedin/Burrow, core/internal/httpserver/prometheus.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rules import names
from rules.baseline.naming import GROUP, LABELS, PARTITION, TOPIC
from rules.baseline.series import Metric
from service.metrics.dropin import EXPORTERS as DROP_INS
from service.metrics.dropin.exporter import LabelNames, Subject

# What history has of what a metric of ours shows; offsets become rates.
HISTORY_OF: Final[Mapping[str, tuple[Metric, bool]]] = {
    names.READ_COMMITTED_LAG.name: (Metric.READ_COMMITTED_LAG, False),
    names.READ_UNCOMMITTED_LAG.name: (Metric.READ_UNCOMMITTED_LAG, False),
    names.READ_COMMITTED_LAG_SECONDS.name: (Metric.READ_COMMITTED_LAG_SECONDS, False),
    names.READ_UNCOMMITTED_LAG_SECONDS.name: (Metric.READ_UNCOMMITTED_LAG_SECONDS, False),
    names.COMMITTED_OFFSET.name: (Metric.CONSUME_RATE, True),
    names.HIGH_WATERMARK.name: (Metric.PRODUCE_RATE, True),
    names.OPEN_SPAN.name: (Metric.OPEN_SPAN, False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A metric in a Prometheus server, and the series of history that its series are."""

    name: str
    metric: Metric
    is_offset: bool  # its rate is what counts
    labels: LabelNames


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A range query, and how its series are named."""

    text: str  # PromQL
    metric: Metric
    is_offset: bool
    labels: Mapping[str, str]  # our label -> theirs
    cluster: str | None = None  # their label of the cluster
    doubles: str | None = None  # PromQL: how many series one of them is made of, at most


_COMMIT_OR_PARTITION: Final = (Subject.COMMIT, Subject.PARTITION)


def _drop_ins() -> dict[str, tuple[Source, ...]]:
    return {
        exporter.name: tuple(
            Source(
                name=family.metric.name,
                metric=HISTORY_OF[family.native][0],
                is_offset=HISTORY_OF[family.native][1],
                labels=exporter.labels,
            )
            for family in exporter.families
            if family.native in HISTORY_OF and family.subject in _COMMIT_OR_PARTITION
        )
        for exporter in DROP_INS
    }


_BURROW: Final = LabelNames(
    topic="topic", partition="partition", group="consumer_group", cluster="cluster"
)
_OWN: Final = LabelNames(topic="topic", partition="partition", group="group", cluster="cluster")
EXPORTERS: Final[Mapping[str, tuple[Source, ...]]] = {
    **_drop_ins(),
    "burrow": tuple(
        Source(name=f"burrow_kafka_{name}", metric=metric, is_offset=is_offset, labels=_BURROW)
        for name, metric, is_offset in (
            ("consumer_partition_lag", Metric.READ_UNCOMMITTED_LAG, False),
            ("consumer_current_offset", Metric.CONSUME_RATE, True),
            ("topic_partition_offset", Metric.PRODUCE_RATE, True),
        )
    ),
    "tidemark": tuple(
        Source(name=name, metric=metric, is_offset=is_offset, labels=_OWN)
        for name, (metric, is_offset) in HISTORY_OF.items()
    ),
}


def queries_of(exporter: str, matchers: Sequence[str] = ()) -> Iterator[Query]:
    """Yield the queries of an exporter's series, of those that all matchers select.

    The greatest value counts where several targets show the same series, as before and after a restart.
    """
    for source in EXPORTERS[exporter]:
        theirs = {
            TOPIC: source.labels.topic,
            PARTITION: source.labels.partition,
            GROUP: source.labels.group,
        }
        labels = {ours: theirs[ours] for ours in LABELS[source.metric]}
        cluster = source.labels.cluster
        by = ", ".join([*labels.values(), *([] if cluster is None else [cluster])])
        selector = f"{source.name}{{{','.join(matchers)}}}" if matchers else source.name
        yield Query(
            text=f"max by ({by}) ({selector})",
            metric=source.metric,
            is_offset=source.is_offset,
            labels=labels,
            cluster=cluster,
            doubles=f"max(count by ({by}) ({selector}))",
        )


def custom_query(text: str) -> Query:
    """Return the query of `METRIC=PROMQL`, whose series have our names of labels.

    Raises:
        ValueError: it has another form, or names no metric of history.
    """
    metric, equals, expression = text.partition("=")
    if not equals or not expression.strip() or metric.strip() not in set(Metric):
        raise ValueError(
            f"{text!r} is not METRIC=PROMQL with a METRIC of history: {', '.join(Metric)}"
        )
    known = Metric(metric.strip())
    return Query(
        text=expression.strip(),
        metric=known,
        is_offset=False,
        labels={label: label for label in LABELS[known]},
    )
