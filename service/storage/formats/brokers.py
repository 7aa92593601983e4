"""The memory of brokers and controllers as plain values for JSON, whose keys are texts."""

from __future__ import annotations

from typing import Any

from rules.facts.broker_memory import BrokerMemory, ControllerTerm, ListedBroker
from service.storage.formats.values import plain, read


def plain_brokers(memory: BrokerMemory) -> dict[str, Any]:
    """Return the memory as JSON has it."""
    return {
        "listed": {str(broker): plain(entry) for broker, entry in memory.listed.items()},
        "gone": {str(broker): at for broker, at in memory.gone_us.items()},
        "silent": {str(broker): at for broker, at in memory.silent_us.items()},
        "no_controller": memory.no_controller_us,
        "no_controller_seen": memory.no_controller_seen_us,
        "terms": plain(memory.terms),
    }


def brokers_of(stored: Any) -> BrokerMemory:
    """Return the memory that `plain_brokers` returned as JSON.

    Raises:
        LookupError, TypeError, ValueError: the stored value is malformed.
    """
    listed = read(dict[str, ListedBroker], stored["listed"])
    gone, silent = (read(dict[str, int], stored[name]) for name in ("gone", "silent"))
    absent, absent_seen = (
        None if at is None else int(at)
        for at in (stored["no_controller"], stored.get("no_controller_seen"))
    )
    return BrokerMemory(
        listed={int(broker): entry for broker, entry in listed.items()},
        gone_us={int(broker): at for broker, at in gone.items()},
        silent_us={int(broker): at for broker, at in silent.items()},
        no_controller_us=absent,
        no_controller_seen_us=absent_seen,
        terms=read(tuple[ControllerTerm, ...], stored["terms"]),
    )
