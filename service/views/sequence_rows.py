"""Sequence episodes as flat rows of plain values, absent ones as None: for JSON, HTTP and the CLI.

The names are a contract with scripts: they may be added to, never changed.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from rules.facts.episodes import Episode, LeaderChange
from rules.facts.rejections import Rejection
from rules.facts.sequence_verdicts import Arrival, SequenceClass
from rules.facts.times import EPOCH
from rules.sequence.arrivals import arrival_evidence
from rules.sequence.explained import Explanation, explain_episode
from service.views.snapshot_rows import Row


def episode_row(episode: Episode) -> Row:
    """Return an episode of a round; its times are those of the rounds that read its lines."""
    brokers = {rejection.broker_id for rejection in episode.rejections}
    return {
        "id": episode.id,
        **explained_row(explain_episode(episode)),
        "topic_id": episode.topic_id,
        "leader_epoch": episode.leader_epoch,
        "brokers": sorted(broker for broker in brokers if broker is not None),
        "first_seen": _time(episode.first_seen_us),
        "last_seen": _time(episode.last_seen_us),
        "state": "open" if episode.ended_us is None else "ended",
        "ended_at": _time(episode.ended_us),
        "is_investigating": not episode.is_reported or arrival_evidence(episode) is Arrival.AWAITED,
        "next_command": next_command(episode),
    }


def next_command(episode: Episode) -> str | None:
    """Return the command to run next for an episode; None: none is needed."""
    if episode.name is None or episode.verdict.class_ is not SequenceClass.LOSS:
        return None
    if episode.verdict.is_confirmed:
        return f"tidemark loss show {episode.name}"
    return f"tidemark loss ls --topic {episode.name.topic} --state all"


def line_row(rejection: Rejection) -> Row:
    """Return one distinct rejection; its times are by the clock of the broker that wrote it."""
    return {
        "form": str(rejection.form),
        "incoming_sequence": rejection.incoming_sequence,
        "current_sequence": rejection.current_sequence,
        "producer_epoch": rejection.producer_epoch,
        "current_epoch": rejection.current_epoch,
        "offset": rejection.offset,
        "broker": rejection.broker_id,
        "source": rejection.source,
        "rejections": rejection.count,
        "first_at": _time(rejection.first_us),
        "last_at": _time(rejection.last_us),
        "proof": None if rejection.proof is None else str(rejection.proof),
    }


def change_row(change: LeaderChange) -> Row:
    """Return one change of leader that was not clean."""
    return {
        "kind": str(change.kind),
        "leader_epoch": change.leader_epoch,
        "leader": change.leader,
        "leader_before": change.leader_before,
        "epoch_end": change.epoch_end,
        "lost_from": change.lost_from,
        "lost_to": change.lost_to,
        "seen_at": _time(change.seen_us),
    }


def explained_row(explained: Explanation) -> Row:
    """Return the explanation of one producer's rejections on one partition."""
    verdict = explained.verdict
    return {
        "producer_id": explained.producer_id,
        "producer_epoch": explained.producer_epoch,
        "topic": explained.topic,
        "partition": explained.partition,
        "offset": explained.offset,
        "incoming_sequence": explained.incoming_sequence,
        "current_sequence": explained.current_sequence,
        "gap": explained.gap,
        "class": str(verdict.class_),
        "phase": str(verdict.phase),
        "reason": str(verdict.reason),
        "evidence": dict(explained.evidence),
        "lost_from": verdict.lost_from,
        "lost_to": verdict.lost_to,
        "lost_offsets": verdict.lost_offsets,
        "at_most_records": verdict.at_most_records,
        "rejections": explained.rejections,
        "explanation": explained.explanation,
        "needed_evidence": explained.needed_evidence,
        "check": explained.check,
    }


def time_text(timestamp: datetime | None) -> str | None:
    """Return a time as JSON has it; it is UTC."""
    return None if timestamp is None else timestamp.isoformat().replace("+00:00", "Z")


def _time(us: int | None) -> str | None:
    return None if us is None else time_text(EPOCH + timedelta(microseconds=us))
