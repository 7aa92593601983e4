"""Many rows as one parameter: lines of text that the database splits.

One statement handles all rows, without the temporary table that COPY would need and that not every role
may create.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from json import JSONEncoder
from typing import Any, Final

NOTHING: Final = "\\N"  # as in COPY
_SPACES: Final = str.maketrans({"\t": " ", "\n": " ", "\0": "\N{SYMBOL FOR NULL}"})
_NUL: Final = "\\u0000"
# One encoder for all: `json.dumps` creates one per value. `default` converts other mappings.
_ENCODER: Final = JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), default=dict
)


def lines_of(rows: Iterable[Sequence[str | None]]) -> str:
    """Return rows as the parameter; no value may contain a tab or line feed, as encoded JSON never does.

    A lone surrogate, which PostgreSQL rejects, becomes a question mark.
    """
    text = "\n".join(
        ["\t".join([NOTHING if value is None else value for value in row]) for row in rows]
    )
    return text.encode("utf-8", "replace").decode("utf-8")


def rows_from(parameter: str, columns: Mapping[str, str]) -> str:
    """Return SQL for the rows as table `r`; `place` is their order.

    Args:
        parameter: the name of the parameter that has the lines.
        columns: in order, each with its type.
    """
    chosen = ", ".join(
        f"CAST(s.f[{number}] AS {kind}) AS {name}"
        for number, (name, kind) in enumerate(columns.items(), 1)
    )
    # OFFSET 0 keeps the planner from splitting each line once per column.
    return (
        f"(SELECT s.place, {chosen} FROM (SELECT place, "  # noqa: S608 - our own names alone
        f"string_to_array(line, chr(9), chr(92) || 'N') AS f "
        f"FROM string_to_table(CAST(:{parameter} AS text), chr(10)) "
        "WITH ORDINALITY AS t (line, place) OFFSET 0) AS s) AS r"
    )


def plain(text: str) -> str:
    """Return a text as a value of a line."""
    return text.translate(_SPACES)


def json_value(value: Any) -> str:
    """Return a value as JSON for a line; NUL, which PostgreSQL rejects, becomes a symbol."""
    text = _ENCODER.encode(value)
    return _ENCODER.encode(_without_nul(value)) if _NUL in text else text


def _without_nul(value: Any) -> Any:
    match value:
        case str():
            return value.replace("\0", "\N{SYMBOL FOR NULL}")
        case list() | tuple():
            return [_without_nul(item) for item in value]
        case Mapping():
            return {_without_nul(name): _without_nul(item) for name, item in value.items()}
        case _:
            return value
