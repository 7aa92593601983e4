"""Renames the contents of checkpoints of format 4 and older to the present names.

Formats 4 and 5 changed names only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from service.storage.formats.arrays import Arrays, read_text, text_of

_ARRAYS: Final = {
    "look.": "observation.",
    ".isr_told_us": ".isr_reported_us",
    ".looked_at_us": ".observed_at_us",
}
_TEXTS: Final = frozenset({"sequences"})
_KEYS: Final = {
    "asked": "queries",
    "asked_in_all": "total_queries",
    "batches_looked_us": "batches_scanned_us",
    "end_looked_us": "end_scanned_us",
    "is_asking": "is_querying",
    "last_look_us": "last_observation_us",
    "looked_us": "observed_us",
    "refusal_count": "rejection_count",
    "refusals": "rejections",
    "told": "reported",
    "told_us": "reported_us",
    "untold": "unreported",
    "untold_us": "unreported_us",
}
_REASON_KEYS: Final = ("reason", "proof")  # only there: a topic may have the name of a reason
_VALUES: Final = {
    "change_not_told": "change_not_reported",
    "look_failed": "scan_failed",
    "looking": "scan_pending",
    "partition_not_told": "partition_not_reported",
    "producer_not_told": "producer_not_reported",
}


def present_names(arrays: Arrays) -> Arrays:
    """Return the arrays of an older checkpoint with present names, also within their JSON."""
    present = {_array_name(name): array for name, array in arrays.items()}
    for name in _TEXTS & present.keys():
        present[name] = text_of(_rename(read_text(present[name])))
    return present


def _rename(plain: Any, key: str = "") -> Any:
    """Return a JSON value with the present names of its keys, and of reasons, at any depth."""
    if isinstance(plain, Mapping):
        return {_KEYS.get(name, name): _rename(value, name) for name, value in plain.items()}
    if isinstance(plain, list):
        return [_rename(value) for value in plain]
    return _VALUES.get(plain, plain) if key in _REASON_KEYS else plain


def _array_name(name: str) -> str:
    for former, present in _ARRAYS.items():
        if former in name:
            name = name.replace(former, present, 1)
    return name
