"""A consumer: what it reads of transactions, and when its offsets are committed.

Java reads uncommitted records by default, librdkafka committed ones. Both commit by themselves every 5 seconds by default;
Kafka Streams, Kafka Connect and the containers of Spring for Apache Kafka switch that off unless the file sets it.
"""

from __future__ import annotations

from rules.posture.client_config import finding
from rules.posture.client_config.clients import Library
from rules.posture.client_config.finding import Judging
from rules.posture.client_config.reasons import Why
from rules.posture.client_config.values import reject_bad_values


def judge_consumer(judging: Judging, library: Library) -> None:
    """Add the lines of a consumer of one library."""
    bad = reject_bad_values(judging)
    if "isolation.level" not in bad:
        _judge_isolation(judging, library)
    if not bad & {"enable.auto.commit", "enable.auto.offset.store"}:
        _judge_auto_commit(judging, library)


def _judge_isolation(judging: Judging, library: Library) -> None:
    own = judging.client.value("isolation.level")
    level = None if own is None else own.lower().replace("-", "_")
    if level == "read_committed":
        judging.add(finding.ISOLATION, Why.RIGHT)
    elif level is not None:
        judging.add(finding.ISOLATION, Why.READS_ABORTED, is_mild=True)
    elif library is Library.JAVA:
        judging.add(finding.ISOLATION, Why.READS_ABORTED, detail="It is not set: read_uncommitted is the default of Java.", is_mild=True)  # fmt: skip


def _judge_auto_commit(judging: Judging, library: Library) -> None:
    explicit = judging.flag("enable.auto.commit")
    if explicit is False:
        judging.add(finding.AUTO_COMMIT, Why.RIGHT)
        return
    if explicit is None and judging.client.framework is not None:
        return  # frameworks switch it off
    stores_itself = (
        library is Library.LIBRDKAFKA and judging.flag("enable.auto.offset.store") is False
    )
    if (
        explicit is None
        and not judging.client.value("group.id")
        and not judging.is_exactly_once_meant
    ):
        return  # without a group nothing is committed
    detail = "" if explicit else "It is not set: true is the default."
    if judging.is_exactly_once_meant:
        judging.add(finding.AUTO_COMMIT, Why.COMMITS_OUTSIDE, detail=detail)
    elif not stores_itself:
        why = Why.COMMITS_AT_POLL if library is Library.JAVA else Why.COMMITS_BEFORE
        judging.add(finding.AUTO_COMMIT, why, detail=detail, is_mild=True)
