"""How much trouble there is: small numbers in `make test`, the whole by `make ordinary-trouble`.

Each number can be set by itself (`ORDINARY_FREEZES=3`), and the seed of all lengths and choices
(`ORDINARY_SEED`), which every run prints.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

IS_WHOLE: Final = "ORDINARY_WHOLE" in os.environ


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Counts of the families, and what goes on beside them."""

    seed: int
    is_realistic: bool  # Kafka's own time-outs instead of the sandbox's fast ones
    freezes: int
    shortest_freeze: float  # seconds
    longest_freeze: float
    reassignments: int
    rolling_restarts: int
    coordinator_moves: int
    transactions: int  # of 30 to 40 seconds
    transactions_at_once: int  # in the family of their own
    transactions_beside: int  # at once, while other things happen
    abandoned_groups: int
    rate: int  # records per second, in all
    most_seconds: float  # after which something hangs


_WHOLE: Final[Mapping[str, float]] = {
    "realistic": 1,
    "freezes": 20,
    "shortest_freeze": 2,
    "longest_freeze": 60,
    "reassignments": 20,
    "rolling_restarts": 5,
    "coordinator_moves": 20,
    "transactions": 400,
    "transactions_at_once": 40,
    "transactions_beside": 8,
    "abandoned_groups": 500,
    "rate": 120,
    "most_seconds": 3600,
}
# The run's fast cluster; transactions go on beside all that happens.
_SHORT: Final[Mapping[str, float]] = {
    "realistic": 0,
    "freezes": 1,
    "shortest_freeze": 5,
    "longest_freeze": 8,
    "reassignments": 2,
    "rolling_restarts": 1,
    "coordinator_moves": 2,
    "transactions": 0,
    "transactions_at_once": 10,
    "transactions_beside": 10,
    "abandoned_groups": 40,
    "rate": 60,
    "most_seconds": 420,
}


def plan_from(environment: Mapping[str, str]) -> Plan:
    """Read the plan: what the environment says, else the whole or the short one."""
    defaults = _WHOLE if "ORDINARY_WHOLE" in environment else _SHORT
    values = {
        name: float(environment.get(f"ORDINARY_{name.upper()}", value))
        for name, value in defaults.items()
    }
    seed = environment.get("ORDINARY_SEED")
    return Plan(
        seed=random.SystemRandom().randrange(1_000_000) if seed is None else int(seed),
        is_realistic=bool(values["realistic"]),
        freezes=int(values["freezes"]),
        shortest_freeze=values["shortest_freeze"],
        longest_freeze=values["longest_freeze"],
        reassignments=int(values["reassignments"]),
        rolling_restarts=int(values["rolling_restarts"]),
        coordinator_moves=int(values["coordinator_moves"]),
        transactions=int(values["transactions"]),
        transactions_at_once=int(values["transactions_at_once"]),
        transactions_beside=int(values["transactions_beside"]),
        abandoned_groups=int(values["abandoned_groups"]),
        rate=int(values["rate"]),
        most_seconds=values["most_seconds"],
    )


PLAN: Final = plan_from(os.environ)
