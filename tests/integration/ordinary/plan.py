"""How much error there is: a little in `make test`, the whole by `make ordinary-trouble`.

Each number can be set by itself (`ORDINARY_FREEZES=3`), and so can the seed of all lengths and
choices (`ORDINARY_SEED`), which every run prints.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

PREFIX: Final = "ORDINARY_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Counts of the families, and what goes on beside them. The defaults are the whole."""

    seed: int = 0
    realistic: bool = True  # Kafka's own time-outs instead of the sandbox's fast ones
    freezes: int = 20
    shortest_freeze: float = 2.0  # seconds
    longest_freeze: float = 60.0
    reassignments: int = 20
    rolling_restarts: int = 5
    coordinator_moves: int = 20
    transactions: int = 400  # of 30 to 40 s, while nothing else happens
    transactions_at_once: int = 40  # of these
    transactions_beside: int = 8  # at once, while other things happen
    abandoned_groups: int = 500
    rate: int = 120  # records per second, in all
    pause_factor: float = 1.0  # of the times between two actions
    actions_unseen: int = 3  # at most, without a complete round of both services
    most_seconds: float = 3600.0  # after which something hangs


WHOLE: Final = Plan()
SHORT: Final = Plan(  # on the fast cluster of the run; transactions go on beside all that happens
    realistic=False,
    freezes=1,
    shortest_freeze=5.0,
    longest_freeze=8.0,
    reassignments=2,
    rolling_restarts=1,
    coordinator_moves=2,
    transactions=0,
    transactions_at_once=10,
    transactions_beside=10,
    abandoned_groups=40,
    rate=60,
    pause_factor=0.4,
    actions_unseen=100,
    most_seconds=1500.0,
)


def plan_from(environment: Mapping[str, str]) -> Plan:
    """Return the whole or the short plan, with what the environment sets of it."""
    plan = WHOLE if f"{PREFIX}WHOLE" in environment else SHORT
    plan = replace(plan, seed=random.SystemRandom().randrange(1_000_000))
    numbers = {
        name: type(value)(float(environment[PREFIX + name.upper()]))
        for name, value in asdict(plan).items()
        if PREFIX + name.upper() in environment
    }
    return replace(plan, **numbers)


PLAN: Final = plan_from(os.environ)
