"""The exposition formats we write, and which of them a scraper's Accept header asks for.

Prometheus 3 fails a scrape whose content type it does not know, so that the content types are exact.
All our names are valid in every escaping scheme but `dots`, which would double their underscores:
whoever asks for it is told that the names came with underscores.
Source: prometheus.io/docs/instrumenting/content_negotiation, RFC 9110 section 12.5.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Syntax(StrEnum):
    """What the bytes resembles; text 0.0.4 and 1.0.0 differ only in names that we do not use."""

    TEXT = "text"
    OPENMETRICS = "openmetrics"


TEXT_0_0_4: Final = "text/plain; version=0.0.4; charset=utf-8"
TEXT_1_0_0: Final = "text/plain; version=1.0.0; charset=utf-8"
OPENMETRICS_1_0_0: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

# (media type, version asked for) -> what we answer; another version is not one that we write.
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
    """What is sent: how the body is written and the content type that says so."""

    syntax: Syntax
    content_type: str


@dataclass(frozen=True, slots=True)
class _Wish:
    media_type: str
    parameters: Mapping[str, str]

    @property
    def quality(self) -> float:
        """Return q from 0 to 1; one that cannot be read is no wish, hence 0."""
        try:
            found = float(self.parameters.get("q", "1"))
        except ValueError:
            return 0.0
        return found if 0 <= found <= 1 else 0.0


def choose_format(accept: str | None) -> Format:
    """Return the format asked for most; of equals the first, and text 0.0.4 if none is ours."""
    wishes = [wish for wish in _wishes(accept or "") if wish.quality > 0]
    for wish in sorted(wishes, key=lambda wish: -wish.quality):
        answer = _ANSWERS.get((wish.media_type, wish.parameters.get("version")))
        if answer is not None:
            syntax, content_type = answer
            return Format(syntax, content_type + _escaping(content_type, wish))
    return Format(Syntax.TEXT, TEXT_0_0_4)


def _escaping(content_type: str, wish: _Wish) -> str:
    asked = wish.parameters.get("escaping")
    if asked is None or content_type == TEXT_0_0_4:
        return ""
    return f"; escaping={asked if asked in _ESCAPINGS else 'underscores'}"


def _wishes(accept: str) -> Iterator[_Wish]:
    for clause in accept.split(","):
        media_type, *parameters = clause.split(";")
        pairs = (parameter.partition("=") for parameter in parameters)
        yield _Wish(
            media_type.strip().lower(),
            {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs},
        )
