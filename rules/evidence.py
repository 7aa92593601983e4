"""The evidence of a finding: numbers, texts, and short lists of both.

It is stored and sent as JSON, so that its values are those of JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Scalar: TypeAlias = bool | int | str | None  # None: not known
EvidenceValue: TypeAlias = Scalar | list[dict[str, Scalar]]
Evidence: TypeAlias = Mapping[str, EvidenceValue]


def in_words(value: EvidenceValue) -> str:
    """Return a value as text for a person: rows separated by semicolons, empty where there are none.

    Values of a row that are not known are left out.
    """
    if isinstance(value, list):
        return "; ".join(_row(row) for row in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _row(row: Mapping[str, Scalar]) -> str:
    return ", ".join(
        f"{name} {in_words(value)}" for name, value in row.items() if value is not None
    )
