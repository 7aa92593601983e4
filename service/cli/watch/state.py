"""What a person has chosen on the live screen, and what each key changes about it. Pure: no clock, no terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from service.cli.watch.fetching import ListName, Subject
from service.cli.watch.keys import Key
from service.cli.watch.lists import NAMES

LONGEST_FILTER: Final = 200  # characters


class Mode(StrEnum):
    """What keys are about."""

    LIST = "list"
    FILTER = "filter"  # what is typed is the filter
    DETAILS = "details"
    HELP = "help"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The chosen row of a list: it is followed by its key, and by its number where it has gone."""

    key: str | None = None
    number: int = 0

    def within(self, keys: Sequence[str]) -> int:
        """Return the number of the chosen row, 0 in an empty list."""
        if self.key in keys and (self.number >= len(keys) or keys[self.number] != self.key):
            return keys.index(self.key)
        return max(min(self.number, len(keys) - 1), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a person has chosen."""

    mode: Mode = Mode.LIST
    name: ListName = ListName.ALERTS
    places: Mapping[ListName, Place] = field(default_factory=dict)
    filters: Mapping[ListName, str] = field(default_factory=dict)
    subject: Subject | None = None  # of the details that are open
    scroll: int = 0  # the first line of details or help
    is_paused: bool = False
    refreshes: int = 0  # that were requested by a key
    is_over: bool = False

    @property
    def filter(self) -> str:
        """Return the filter of the chosen list."""
        return self.filters.get(self.name, "")

    @property
    def place(self) -> Place:
        """Return the chosen row of the chosen list."""
        return self.places.get(self.name, Place())


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is on the screen while a key is pressed."""

    subjects: Sequence[Subject]  # the rows of the chosen list that the filter leaves
    page: int  # lines below the headings
    last_scroll: int  # the first line of the last page of details or help


def press(state: State, key: str, shown: Shown) -> State:
    """Return the state after a key."""
    match state.mode:
        case Mode.FILTER:
            return _type(state, key)
        case Mode.DETAILS | Mode.HELP:
            return _scroll(state, key, shown)
        case Mode.LIST:
            return _move(state, key, shown)


def _type(state: State, key: str) -> State:
    match key:
        case Key.ENTER | Key.DOWN:
            return replace(state, mode=Mode.LIST)
        case Key.ESCAPE:
            return _filtered(replace(state, mode=Mode.LIST), "")
        case Key.BACKSPACE:
            return _filtered(state, state.filter[:-1])
        case Key.CLEAR:
            return _filtered(state, "")
        case _ if len(key) == 1:
            return _filtered(state, (state.filter + key)[:LONGEST_FILTER])
        case _:
            return state


def _filtered(state: State, words: str) -> State:
    return replace(state, filters={**state.filters, state.name: words})


def _steps(page: int) -> dict[str, int]:
    return {
        Key.UP: -1, "k": -1, Key.DOWN: 1, "j": 1, Key.PAGE_UP: -page, Key.PAGE_DOWN: page, " ": page,
    }  # fmt: skip


def _moved(place: int, key: str, *, last: int, page: int) -> int | None:
    """Return the place to which a key leads, None if it leads nowhere."""
    if key in (Key.HOME, "g"):
        return 0
    if key in (Key.END, "G"):
        return last
    step = _steps(max(page, 1)).get(key)
    return None if step is None else max(min(place + step, last), 0)


def _scroll(state: State, key: str, shown: Shown) -> State:
    closing = (Key.ESCAPE, Key.BACKSPACE, Key.ENTER, "h")
    if key in closing or (state.mode is Mode.HELP and key == "?"):
        is_above = state.mode is Mode.HELP and state.subject is not None
        return replace(
            state,
            mode=Mode.DETAILS if is_above else Mode.LIST,
            subject=state.subject if is_above else None,
            scroll=0,
        )
    place = min(state.scroll, shown.last_scroll)
    scroll = _moved(place, key, last=shown.last_scroll, page=shown.page)
    return _command(state, key) if scroll is None else replace(state, scroll=scroll)


def _move(state: State, key: str, shown: Shown) -> State:
    keys = [subject.key for subject in shown.subjects]
    number = state.place.within(keys)
    if key == Key.ENTER:
        return _open(state, shown.subjects[number]) if keys else state
    if key == Key.ESCAPE:
        return _filtered(state, "") if state.filter else replace(state, is_over=True)
    if key == "/":
        return replace(state, mode=Mode.FILTER)
    moved = _moved(number, key, last=max(len(keys) - 1, 0), page=shown.page)
    if moved is None:
        return _command(state, key)
    place = Place(key=keys[moved] if keys else None, number=moved)
    return replace(state, places={**state.places, state.name: place})


def _open(state: State, subject: Subject) -> State:
    place = replace(state.place, key=subject.key)
    places = {**state.places, state.name: place}
    return replace(state, mode=Mode.DETAILS, subject=subject, scroll=0, places=places)


def _to_list(state: State, name: ListName) -> State:
    return replace(state, mode=Mode.LIST, name=name, subject=None, scroll=0)


def _neighbour(state: State, step: int) -> State:
    return _to_list(state, NAMES[(NAMES.index(state.name) + step) % len(NAMES)])


COMMANDS: Final[Mapping[str, Callable[[State], State]]] = {
    "q": lambda state: replace(state, is_over=True),
    "?": lambda state: replace(state, mode=Mode.HELP, scroll=0),
    "p": lambda state: replace(state, is_paused=not state.is_paused),
    "r": lambda state: replace(state, refreshes=state.refreshes + 1),
    Key.TAB: lambda state: _neighbour(state, 1),
    Key.BACK_TAB: lambda state: _neighbour(state, -1),
}


def _command(state: State, key: str) -> State:
    """Return the state after a key that does the same everywhere."""
    if key in COMMANDS:
        return COMMANDS[key](state)
    if len(key) == 1 and key in "123456789" and int(key) <= len(NAMES):
        return _to_list(state, NAMES[int(key) - 1])
    return state
