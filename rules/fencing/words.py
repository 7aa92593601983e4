"""What a fencing episode means, for a person: what happened, what to do, what is not lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rules.facts.broker_log import ClientInstance
from rules.facts.fencing import FencingClass, FencingReason

EXPLANATIONS: Final[Mapping[FencingClass, str]] = {
    FencingClass.ZOMBIE: (
        "An older instance still writes under a transactional id that a newer one has taken over."
    ),
    FencingClass.INSTANCES_FIGHTING: (
        "Two instances take the same transactional id from each other, and abort each other's transactions."
    ),
    FencingClass.COORDINATOR_TIMEOUT: (
        "The coordinator aborted the transaction because transaction.timeout.ms was over, and fenced its owner."
    ),
    FencingClass.LATE_BATCH: (
        "A late request of an epoch that the same producer has left was rejected. Nobody else is involved."
    ),
    FencingClass.HANDOVER: (
        "A newer instance took the transactional id over, and nothing of the older one was seen since."
    ),
    FencingClass.UNDETERMINED: "Who fenced the producer is not known.",
}
# A producer of librdkafka raises its epoch after an abort (KIP-360), and leaves the records of a restart.
RESTART_OR_OWN_EPOCH: Final = (
    "The transactional id was initialised again: by a newer instance, or by the same producer after an abort. "
    "No transaction was open, and nothing of the older epoch was seen since."
)
_RESTART: Final = (
    "A fenced producer cannot be used again. Java: close it on ProducerFencedException, and on "
    "InvalidProducerEpochException abort, which then says so. librdkafka: close it on the fatal error _FENCED."
)
_READ_AGAIN: Final = (
    "Check in the application's log that it has read the input of the aborted transaction again."
)
ADVICE: Final[Mapping[FencingClass, str]] = {
    FencingClass.ZOMBIE: f"End the older instance. {_RESTART}",
    FencingClass.INSTANCES_FIGHTING: (
        "Stop one of the two, or give each a transactional id of its own (two deployments, replicas that share "
        f"one id, a test against the cluster in use). {_RESTART} {_READ_AGAIN}"
    ),
    FencingClass.COORDINATOR_TIMEOUT: (
        "Find out why the transaction took so long (a pause, a large transaction, a slow call inside of it) "
        f"before transaction.timeout.ms is raised. {_RESTART} {_READ_AGAIN}"
    ),
    FencingClass.LATE_BATCH: "Nothing to do: the client has reported or sent again what that batch held.",
    FencingClass.HANDOVER: f"Nothing to do after an intended restart. {_READ_AGAIN}",
    FencingClass.UNDETERMINED: "Check whether two processes use this transactional id.",
}
DISCARDED: Final = "A read_committed reader gets no record of the aborted transaction."
PROTECTED: Final = "Requests that were rejected as fenced wrote nothing, and committed transactions are not affected."
_REQUEST_LOG: Final = "the request log of the coordinator (kafka.request.logger at DEBUG), which names the client and the host"
NEEDED_EVIDENCE: Final[Mapping[FencingReason, str]] = {
    FencingReason.OWNER_OR_SECOND_INSTANCE: (
        f"{_REQUEST_LOG}: an EndTxn of the owner, or none. With transactions v2 nothing else distinguishes an "
        "abort by the owner from one by a newer instance"
    ),
    FencingReason.OWN_EPOCH_OR_SECOND_INSTANCE: (
        f"{_REQUEST_LOG}: whether InitProducerId had the producer's own epoch (KIP-360)"
    ),
    FencingReason.REPEATED_TAKEOVERS: (
        f"{_REQUEST_LOG}; or the brokers' error counters, which rise where an older instance still writes"
    ),
    FencingReason.NO_TAKEOVER_SEEN: (
        "__transaction_state from before the rejection on, or the coordinator's log lines of that time"
    ),
    FencingReason.PRODUCER_NOT_KNOWN: (
        "DESCRIBE on every transactional id, so that coordinators report whose producer id it is"
    ),
    FencingReason.NOT_ATTRIBUTED: (
        f"{_REQUEST_LOG}, and the logs of all brokers: counters name no producer"
    ),
}


def instance_text(instance: ClientInstance | None) -> str | None:
    """Return an instance as one line; None where no log names it."""
    if instance is None:
        return None
    beside = [instance.software, instance.listener and f"listener {instance.listener}"]
    extra = ", ".join(part for part in beside if part)
    return f"{instance.client_id} at {instance.host}:{instance.port}" + (
        f" ({extra})" if extra else ""
    )
