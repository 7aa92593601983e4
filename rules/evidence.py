"""What a finding shows for its verdict: numbers, words, and short lists of both.

It is stored and sent as JSON, so that its values are those of JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Scalar: TypeAlias = bool | int | str | None  # None: not known
EvidenceValue: TypeAlias = Scalar | list[dict[str, Scalar]]
Evidence: TypeAlias = Mapping[str, EvidenceValue]
