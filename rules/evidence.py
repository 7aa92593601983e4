"""The evidence of a finding: numbers, texts, and short lists of both.

It is stored and sent as JSON, so that its values are those of JSON. A subject with many fields declares
them in a TypedDict: `generic` is the way out of it, `read_evidence` the way in.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast, get_args, get_type_hints

Scalar: TypeAlias = bool | int | str | None  # None: not known
EvidenceValue: TypeAlias = Scalar | list[dict[str, Scalar]]
Evidence: TypeAlias = Mapping[str, EvidenceValue]
# A TypedDict of scalars and lists of rows, rows of scalars.
DeclaredT = TypeVar("DeclaredT", bound=Mapping[str, object])


def generic(declared: Mapping[str, object]) -> Evidence:
    """Return declared evidence as that of any finding; a test proves that its values are those of JSON."""
    return cast("Evidence", declared)


def read_evidence(stored: Mapping[str, Any], declared: type[DeclaredT]) -> DeclaredT:
    """Return the values that have a declared name and its type; rows without a required value are left out.

    Stored evidence outlives the version that wrote it.
    """
    scalars, rows = _types_of(declared)
    values: dict[str, object] = {
        name: stored[name]
        for name, types in scalars.items()
        if name in stored and type(stored[name]) in types
    }
    for name, (row_type, required) in rows.items():
        if isinstance(entries := stored.get(name), list):
            read = [read_evidence(row, row_type) for row in entries if isinstance(row, dict)]
            values[name] = [row for row in read if required <= row.keys()]
    return cast("DeclaredT", values)


@cache
def _types_of(
    declared: type,
) -> tuple[dict[str, tuple[type, ...]], dict[str, tuple[type[dict[str, object]], frozenset[str]]]]:
    """Return the types of the scalars, and for lists the type of a row with its required names."""
    types = {name: get_args(of) or (of,) for name, of in get_type_hints(declared).items()}
    rows = {name: of for name, of in types.items() if hasattr(of[0], "__required_keys__")}
    scalars = {name: of for name, of in types.items() if name not in rows}
    return scalars, {name: (of, of.__required_keys__) for name, (of,) in rows.items()}


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
