"""The name that a person means by what they typed: a whole one, or its beginning.

Whoever is called at night types the first letters of an id, or copies half of it. One beginning stands for one name;
what fits several, or none, is answered with what was probably meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from rules.errors import NotThereError, RequestError
from service.cli.terminal.words import few

COMPARED: Final = 20_000  # names that are searched for similar ones, in a second or so
SIMILAR: Final = 3


def complete_name(typed: str, names: Iterable[str], what: str, *, hint: str = "") -> str:
    """Return the name that was typed, or else the only one that begins so.

    `what` is the word for one of the names, like "group"; `hint` ends the error of an unknown one.

    Raises:
        NotThereError: there is none; the error has the hint, and similar ones.
        RequestError: several begin so; the error has the first of them.
    """
    every = dict.fromkeys(names)
    if typed in every:
        return typed
    matches = [name for name in every if typed and name.startswith(typed)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise RequestError(f"{typed} is the beginning of several {_plural(what)}: {few(matches)}")
    raise not_there(typed, list(every), what, hint=hint)


def not_there(typed: str, names: Sequence[str], what: str, *, hint: str = "") -> NotThereError:
    """Return the error of a name that is not among these, with the hint, and similar ones."""
    more = hint and f"; {hint}"
    return NotThereError(f"there is no {what} {typed!r}{more}{did_you_mean(typed, names)}")


def did_you_mean(typed: str, names: Iterable[str]) -> str:
    """Return a question about the names that are similar, "" if none is."""
    near = similar_names(typed, names)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def similar_names(typed: str, names: Iterable[str]) -> list[str]:
    """Return the names that are similar, the most similar first, three at most."""
    import difflib  # noqa: PLC0415 - of errors alone

    return difflib.get_close_matches(typed, list(islice(names, COMPARED)), n=SIMILAR)


def _plural(what: str) -> str:
    return what if what.endswith("s") else f"{what}s"
