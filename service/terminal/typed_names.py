"""The name or id that a person means by what they typed: a whole one, or its beginning.

Whoever is called at night types the first letters of an id, or copies half of it. One beginning stands for one name;
what fits several, or none, is answered with what was probably meant.

A whole name may be the beginning of another one: once app-1 has ended, it would stand for app-10. So a name is
completed only for a person, who is told; scripts and runbooks pass whole names. Ids are all of one length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

import click

from rules.errors import NotThereError, RequestError
from service.terminal.formats import is_interactive
from service.terminal.words import few, printable

COMPARED: Final = 20_000  # names that are searched for similar ones, in a second or so
SIMILAR: Final = 3


def complete_name(
    typed: str, names: Iterable[str], what: str, *, hint: str = "", verb: str = "showing"
) -> str:
    """Return the name that was typed, or else, at a terminal, the only one that begins so, which stderr then says.

    `what` is the word for one of the names, like "group"; `hint` ends the error of an unknown one; `verb` says what
    is done with another one.

    Raises:
        NotThereError: there is none; the error has the hint, and similar ones.
        RequestError: at a terminal several begin so; the error has the first of them.
    """
    every = list(dict.fromkeys(names))
    if typed in every:
        return typed
    if not is_interactive():
        raise not_there(typed, every, what, hint=hint)
    name = complete_id(typed, every, what, hint=hint)
    click.echo(f"tidemark: there is no {what} {typed!r}; {verb} {printable(name)}", err=True)
    return name


def complete_id(typed: str, ids: Iterable[str], what: str, *, hint: str = "") -> str:
    """Return the id that was typed, or else the only one that begins so.

    Raises:
        NotThereError: there is none; the error has the hint, and similar ones.
        RequestError: several begin so; the error has the first of them.
    """
    every = list(dict.fromkeys(ids))
    if typed in every:
        return typed
    matches = _beginning_with(typed, every)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise RequestError(f"{typed} is the beginning of several {_plural(what)}: {few(matches)}")
    raise not_there(typed, every, what, hint=hint)


def not_there(typed: str, names: Sequence[str], what: str, *, hint: str = "") -> NotThereError:
    """Return the error of a name that is not among these, with the hint, and similar ones."""
    more = hint and f"; {hint}"
    return NotThereError(f"there is no {what} {typed!r}{more}{did_you_mean(typed, names)}")


def did_you_mean(typed: str, names: Iterable[str]) -> str:
    """Return a question about the names that are similar, "" if none is."""
    near = similar_names(typed, names)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def similar_names(typed: str, names: Iterable[str]) -> list[str]:
    """Return the names that begin so, or else those that are similar, the most similar first; three at most."""
    compared = list(islice(names, COMPARED))
    if matches := _beginning_with(typed, compared):
        return matches[:SIMILAR]
    import difflib  # noqa: PLC0415 - of errors alone

    return difflib.get_close_matches(typed, compared, n=SIMILAR)


def _beginning_with(typed: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if typed and name.startswith(typed)]


def _plural(what: str) -> str:
    return what if what.endswith("s") else f"{what}s"
