"""The next commands for an alert: those that show its cause, then those that change the alert."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rules.loss.summary import RULES as LOSSES
from service.cli.server.server_options import options_to, options_to_also

Row = Mapping[str, Any]

COMMITTED: Final = "committed"  # of the transaction in which a batch was rejected
BROKERS: Final = "--bootstrap-servers HOST:PORT"
SEQUENCES: Final = (
    "sequence_gap_loss",
    "sequence_gap_reordering",
    "sequence_gap_undetermined",
    "duplicates_possible",
    "producer_sequence_bug",
)
OF_BROKERS: Final = ("broker_gone", "broker_silent", "controller_absent", "controller_moves_often")
UNUSUAL: Final = "_unusual"  # rules on what is usual
TRANSACTIONS: Final = (
    "last_stable_offset_stuck",
    "transaction_hanging",
    "transaction_marker_stuck",
    "transaction_overdue",
    "read_committed_consumers_blocked",
    "producer_fenced",
    "transaction_abort_ratio_high",
)


def next_steps(alert: Row, server: str) -> Sequence[str]:
    """Return commands to copy, the most useful first."""
    at = options_to(server)
    whole = f"tidemark collect --once -o table {BROKERS}"
    general = whole if alert.get("rule") in OF_BROKERS else f"tidemark status{at}"
    queries = [*_cost_queries(alert, at)]
    queries = queries or list(_list_queries(alert, at, options_to_also(server))) or [general]
    if check := (alert.get("labels") or {}).get("check"):
        queries = [f"tidemark posture --check {shlex.quote(check)}{at}"]
    return [*_repair(alert), *queries, *_list_actions(alert, at)]


def runbook_command(alert: Row, server: str) -> str:
    """Return the command that walks through the runbook of an alert."""
    return f"tidemark runbook run {alert.get('fingerprint')}{options_to(server)}"


def _repair(alert: Row) -> Iterator[str]:
    repair = (alert.get("evidence") or {}).get("repair")
    if isinstance(repair, str) and alert.get("state") != "resolved":
        yield repair


def _cost_queries(alert: Row, at: str) -> Iterator[str]:
    """Yield what shows the cost of transactions, or the partitions of a skewed topic."""
    rule, labels = alert.get("rule"), alert.get("labels") or {}
    transaction, topic = _transaction(labels), labels.get("topic")
    if rule == "transaction_too_small" and transaction:
        yield f"tidemark tx cost --transactional-id {shlex.quote(transaction)}{at}"
    elif rule == "coordinator_slow":
        yield f"tidemark tx cost{at}"
    elif rule == "partition_skewed" and topic:
        yield f"tidemark collect --once --topics {_pattern(topic)} -o table {BROKERS}"


def _list_queries(alert: Row, at: str, also: str) -> Iterator[str]:
    rule, labels = alert.get("rule"), alert.get("labels") or {}
    topic, partition = labels.get("topic"), labels.get("partition")
    place = shlex.quote(f"{topic}-{partition}") if topic and partition else None
    evidence = alert.get("evidence") or {}
    group, transaction = labels.get("group"), _transaction(labels) or _transaction(evidence)
    if str(rule).endswith(UNUSUAL):
        chosen = f" --group {shlex.quote(group)}" if group else ""
        chosen += f" --topic {shlex.quote(topic)}" if topic else ""
        yield f"tidemark baselines ls{chosen}{at}"
    elif rule in LOSSES and place:
        yield f"tidemark loss show {place}{at}"
    elif rule in SEQUENCES and place:
        yield f"tidemark sequence show {place}{at}"
        if transaction and evidence.get("transaction") not in (None, COMMITTED):
            yield f"tidemark tx show {shlex.quote(transaction)} {BROKERS}{also}"
    elif rule in TRANSACTIONS and transaction:
        yield f"tidemark tx show {shlex.quote(transaction)} {BROKERS}{also}"
    elif rule in TRANSACTIONS and topic:
        yield f"tidemark tx ls --topic {_pattern(topic)} {BROKERS}"
    elif group:
        yield f"tidemark lag {shlex.quote(group)}{at}"
    elif topic and place:
        yield f"tidemark collect --once --topics {_pattern(topic)} --replicas -o table {BROKERS}"
    elif topic:
        yield f"tidemark sequence ls --topic {shlex.quote(topic)}{at}"


def _list_actions(alert: Row, at: str) -> Iterator[str]:
    if alert.get("state") != "firing":
        return
    name = alert.get("fingerprint")
    if alert.get("acknowledged") is None:
        yield f"tidemark alerts ack {name}{at}"
    if alert.get("kind") == "event":
        yield f"tidemark alerts close {name} --why 'WHAT WAS DONE'{at}"


def _transaction(row: Row) -> str | None:
    name = row.get("transactional_id")
    return name if isinstance(name, str) and name else None


def _pattern(name: str) -> str:
    """Return a name for an option that takes a regular expression."""
    return shlex.quote(re.escape(name))
