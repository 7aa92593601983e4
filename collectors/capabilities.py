"""Which requests each broker can answer in a version that we read, and what is off without one.

Source: ApiVersions (KIP-35), which every connection begins with. It names no release: the newest request that
a broker has says which one it is at least.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from collectors.session import Session
from collectors.wire import api
from collectors.wire.api import Api
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause
from rules.facts.identity import Broker


@dataclass(frozen=True, slots=True)
class Capability:
    """A request, and what it gives; `is_vital`: without it nothing can be said of most subjects."""

    api: Api
    gives: str
    is_vital: bool = False


CAPABILITIES: Final = (
    Capability(api.DESCRIBE_CLUSTER, "the brokers and the cluster id", is_vital=True),
    Capability(api.METADATA, "partitions, leaders, ISR", is_vital=True),
    Capability(api.LIST_OFFSETS, "log start, LSO, high watermark, log end", is_vital=True),
    Capability(api.LIST_GROUPS, "groups", is_vital=True),
    Capability(api.DESCRIBE_GROUPS, "members of classic groups", is_vital=True),
    Capability(api.OFFSET_FETCH, "committed offsets", is_vital=True),
    Capability(api.OFFSET_FOR_LEADER_EPOCH, "proofs of lost records", is_vital=True),
    Capability(api.FETCH, "whether there is anything to read; the transaction log", is_vital=True),
    Capability(api.DESCRIBE_CONFIGS, "min.insync.replicas, unclean elections", is_vital=True),
    Capability(api.DESCRIBE_ACLS, "whether transactional ids are hidden", is_vital=True),
    Capability(api.DESCRIBE_PRODUCERS, "who has a transaction open", is_vital=True),
    Capability(api.DESCRIBE_TRANSACTIONS, "transactions", is_vital=True),
    Capability(api.LIST_TRANSACTIONS, "transactions", is_vital=True),
    Capability(api.DESCRIBE_QUORUM, "the active controller and its clock"),
    Capability(api.CONSUMER_GROUP_DESCRIBE, "members of consumer groups (KIP-848)"),
    Capability(api.DESCRIBE_TOPIC_PARTITIONS, "eligible leader replicas (ELR)"),
    Capability(api.SHARE_GROUP_DESCRIBE, "members of share groups"),
    Capability(api.STREAMS_GROUP_DESCRIBE, "members of streams groups"),
    Capability(api.DESCRIBE_SHARE_GROUP_OFFSETS, "offsets of share groups"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityCheck:
    """The brokers that lack a request."""

    capability: Capability
    missing_at: tuple[int, ...]  # broker ids; of brokers that are connected

    def is_turned_off(self, release: str | None) -> bool:
        """Whether all brokers are of a release that has it: its feature is not enabled."""
        return release is not None and _numbers(release) >= _numbers(self.capability.api.since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the connected brokers have and lack; without any, nothing is known of a request."""

    brokers: tuple[int, ...]  # ids
    checks: tuple[CapabilityCheck, ...]

    @property
    def oldest_release(self) -> str | None:
        """Return the release that every connected broker has at least; None: not even the first."""
        if not self.brokers:
            return None
        offered = [check.capability.api.since for check in self.checks if not check.missing_at]
        return max(offered, key=_numbers, default=None)


def check_capabilities(session: Session) -> Capabilities:
    """Return for each request which of the connected brokers lack it; nothing is sent."""
    brokers = session.ready_brokers()
    checks = tuple(
        CapabilityCheck(
            capability=capability,
            missing_at=_ids(
                broker for broker in brokers if _is_missing(session.version(broker, capability.api))
            ),
        )
        for capability in CAPABILITIES
    )
    return Capabilities(brokers=_ids(brokers), checks=checks)


def _ids(brokers: Iterable[Broker]) -> tuple[int, ...]:
    return tuple(sorted(int(broker.broker_id) for broker in brokers))


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _is_missing(version: int | Failure) -> bool:
    return isinstance(version, Failure) and version.cause is GapCause.UNSUPPORTED
