"""What a run was, as a row of a table for docs/verified.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

HEAD: Final = (
    "application", "minutes", "records", "transactions", "kills", "longest pause", "watched",
    "rounds", "complete", "findings",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Row:
    """One service that watched one run."""

    application: str
    seconds: float
    records: int
    transactions: int
    kills: int
    longest_pause: float  # seconds in which nothing came out
    watched: str
    rounds: int
    complete: int
    findings: str

    def cells(self) -> list[str]:
        """Return the row's texts."""
        return [
            self.application,
            f"{self.seconds / 60:.1f}",
            f"{self.records:,}",
            f"{self.transactions:,}",
            str(self.kills),
            f"{self.longest_pause:.1f} s",
            self.watched,
            str(self.rounds),
            str(self.complete),
            self.findings,
        ]


def render_table(rows: Iterable[Row]) -> str:
    """Write the table in Markdown."""
    lines = [HEAD, ["---"] * len(HEAD), *(row.cells() for row in rows)]
    return "\n".join(_line(cells) for cells in lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
