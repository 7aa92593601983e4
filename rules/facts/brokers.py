"""Which brokers answered in a round, and what the controllers' quorum said.

Source: DescribeQuorum (KIP-595). Brokers pass it on to the active controller, and keep it until there is
one: while no controller is active, brokers that answer everything else leave this request unanswered.
The controller id in DescribeCluster and Metadata says nothing: in KRaft it is that of a random broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rules.facts.identity import BrokerId


class ControllerState(StrEnum):
    """What a round found out about the active controller."""

    ACTIVE = "active"
    NO_LEADER = "no_leader"  # the quorum answered that it has no leader
    NO_ANSWER = "no_answer"  # brokers that answered other requests got no answer from a controller
    NOT_KNOWN = "not_known"  # not queried, no permission, or a release without a quorum


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """The controllers' quorum as one round sees it; its leader is the active controller."""

    state: ControllerState = ControllerState.NOT_KNOWN
    leader: BrokerId | None = None
    leader_epoch: int | None = None  # grows with every election


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerContact:
    """Which of the registered brokers answered requests of a round; the others were not queried."""

    answered: frozenset[BrokerId] = frozenset()
    silent: Mapping[BrokerId, str] = field(
        default_factory=dict
    )  # queried in vain: why, for a person
