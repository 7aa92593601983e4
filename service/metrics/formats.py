"""The exposition formats we write, and which of them a scraper's Accept header asks for.

Prometheus 3 fails a scrape whose content type it does not know, so that the content types are exact.
All our names are valid in every escaping scheme but `dots`, which would double their underscores:
for `dots` the answer states that names are escaped by underscores.
Source: prometheus.io/docs/instrumenting/content_negotiation, RFC 9110 section 12.5.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Syntax(StrEnum):
    """The syntax of a body; text 0.0.4 and 1.0.0 differ only in names that we do not use."""

    TEXT = "text"
    OPENMETRICS = "openmetrics"


TEXT_0_0_4: Final = "text/plain; version=0.0.4; charset=utf-8"
TEXT_1_0_0: Final = "text/plain; version=1.0.0; charset=utf-8"
OPENMETRICS_1_0_0: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

# (media type, requested version) -> content type of the answer; we write no other versions.
_ANSWERS: Final[Mapping[tuple[str, str | None], tuple[Syntax, str]]] = {
    ("application/openmetrics-text", "1.0.0"): (Syntax.OPENMETRICS, OPENMETRICS_1_0_0),
    ("application/openmetrics-text", None): (Syntax.OPENMETRICS, OPENMETRICS_1_0_0),
    ("text/plain", "1.0.0"): (Syntax.TEXT, TEXT_1_0_0),
    ("text/plain", "0.0.4"): (Syntax.TEXT, TEXT_0_0_4),
    ("text/plain", None): (Syntax.TEXT, TEXT_0_0_4),
    ("text/*", None): (Syntax.TEXT, TEXT_0_0_4),
    ("*/*", None): (Syntax.TEXT, TEXT_0_0_4),
}
_ESCAPINGS: Final = ("allow-utf-8", "underscores", "values")


@dataclass(frozen=True, slots=True)
class Format:
    """The format of an answer: the syntax of its body and its content type."""

    syntax: Syntax
    content_type: str


@dataclass(frozen=True, slots=True)
class _AcceptClause:
    media_type: str
    parameters: Mapping[str, str]

    @property
    def quality(self) -> float:
        """Return q from 0 to 1; 0 for one that cannot be parsed."""
        try:
            weight = float(self.parameters.get("q", "1"))
        except ValueError:
            return 0.0
        return weight if 0 <= weight <= 1 else 0.0


def choose_format(accept: str | None) -> Format:
    """Return the format with the highest quality, the first of equals; text 0.0.4 if we write none."""
    clauses = [clause for clause in _parse_accept(accept or "") if clause.quality > 0]
    for clause in sorted(clauses, key=lambda clause: -clause.quality):
        answer = _ANSWERS.get((clause.media_type, clause.parameters.get("version")))
        if answer is not None:
            syntax, content_type = answer
            return Format(syntax, content_type + _escaping(content_type, clause))
    return Format(Syntax.TEXT, TEXT_0_0_4)


def _escaping(content_type: str, clause: _AcceptClause) -> str:
    scheme = clause.parameters.get("escaping")
    if scheme is None or content_type == TEXT_0_0_4:
        return ""
    return f"; escaping={scheme if scheme in _ESCAPINGS else 'underscores'}"


def _parse_accept(accept: str) -> Iterator[_AcceptClause]:
    for text in accept.split(","):
        media_type, *parameters = text.split(";")
        pairs = (parameter.partition("=") for parameter in parameters)
        yield _AcceptClause(
            media_type.strip().lower(),
            {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs},
        )
