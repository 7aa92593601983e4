"""The topics of a run and its groups at rest."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from tests.integration.clients import produce
from tests.integration.ordinary.groups import abandon_groups

BROKERS: Final = (1, 2, 3)
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
UNCLEAN: Final = {"unclean.leader.election.enable": "true"}
PAIRS: Final = [[1, 2], [2, 3], [3, 1], [2, 1], [3, 2], [1, 3]]
PARTITIONS: Final = 6
OLD_RECORDS: Final = 40
# By check of posture: the ends of the names of the topics whose settings are made wrong.
MADE_WRONG: Final = {
    "topic_min_insync_replicas": ("pairs",),
    "topic_replication": ("pairs",),
    "topic_unclean_election": ("long", "orders", "orders-validated", "pairs"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Topics of a run; all but the last let replicas lead that were not in sync."""

    orders: str  # three replicas; a pipeline copies it
    validated: str  # ... to this one, in transactions
    pairs: str  # two replicas each
    long: str  # of long transactions, a partition for each transactional id
    old: str  # at rest, with groups that nobody uses any more

    @classmethod
    def of(cls, stem: str) -> Topics:
        return cls(
            orders=f"{stem}-orders",
            validated=f"{stem}-orders-validated",
            pairs=f"{stem}-pairs",
            long=f"{stem}-long",
            old=f"{stem}-old",
        )

    @property
    def busy(self) -> tuple[str, ...]:
        return (self.orders, self.validated, self.pairs, self.long)

    def make(self, cluster: Sandbox, transactions: int) -> None:
        """Create them, with so many partitions for long transactions."""
        admin = SandboxAdmin(cluster.bootstrap_servers)
        three = with_leader_order(BROKERS, PARTITIONS)
        admin.create_topic(self.orders, assignment=three, configs=UNCLEAN)
        admin.create_topic(self.validated, assignment=three, configs=UNCLEAN)
        admin.create_topic(
            self.pairs, assignment=PAIRS, configs=UNCLEAN | {"min.insync.replicas": "1"}
        )
        admin.create_topic(
            self.long, assignment=with_leader_order(BROKERS, transactions), configs=UNCLEAN
        )
        admin.create_topic(self.old, assignment=three)

    @property
    def least_in_sync(self) -> dict[str, int]:
        """Return min.insync.replicas by topic."""
        two = dict.fromkeys((*self.busy, self.old, OFFSETS, TRANSACTIONS), 2)
        return two | {self.pairs: 1}

    def make_old_groups(self, servers: str, count: int, chance: random.Random) -> list[str]:
        """Abandon groups a few offsets before the end of the topic at rest; return their names."""
        for partition in range(PARTITIONS):
            produce(servers, self.old, OLD_RECORDS, partition=partition)
        names = [f"{self.old}-group-{number}" for number in range(count)]
        positions = [[OLD_RECORDS - chance.randint(1, 5) for _ in range(PARTITIONS)] for _ in names]
        abandon_groups(servers, names, self.old, positions)
        return names


def with_leader_order(replicas: Sequence[int], count: int) -> list[list[int]]:
    """Return replica lists for so many partitions, whose leaders are spread evenly."""
    chosen = list(replicas)
    return [(chosen[n % len(chosen) :] + chosen[: n % len(chosen)]) for n in range(count)]
