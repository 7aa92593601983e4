"""What each key does, whatever a terminal sends for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from service.cli.watch.fetching import ListName, Subject
from service.cli.watch.keys import Key, is_unfinished, keys_in
from service.cli.watch.state import Mode, Shown, State, press


def shown(*keys: str, last_scroll: int = 0) -> Shown:
    subjects = [Subject(name=ListName.ALERTS, key=key, row={}) for key in keys]
    return Shown(subjects=subjects, page=2, last_scroll=last_scroll)


ROWS = shown("a", "b", "c", "d")


def after(keys: Sequence[str], state: State | None = None, rows: Shown = ROWS) -> State:
    state = state or State()
    for key in keys:
        state = press(state, key, rows)
    return state


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("\x1b[A\x1bOB", [Key.UP, Key.DOWN]),
        ("\x1b[5~\x1b[6~\x1b[Z", [Key.PAGE_UP, Key.PAGE_DOWN, Key.BACK_TAB]),
        ("\x1b", [Key.ESCAPE]),
        ("\x1bq", [Key.ESCAPE, "q"]),
        ("\x1b[1;5C\x1b[200~\x1b[15~", []),
        ("é\r\n\t\x7f\x00", ["é", Key.ENTER, Key.ENTER, Key.TAB, Key.BACKSPACE]),
    ],
)
def test_both_forms_of_keys_are_read_and_unknown_ones_left_out(sent: str, keys: list[str]) -> None:
    assert list(keys_in(sent)) == keys


@pytest.mark.parametrize("beginning", ["\x1b", "\x1b[", "x\x1bO", "\x1b[1;"])
def test_the_beginning_of_a_sequence_is_waited_for(beginning: str) -> None:
    assert is_unfinished(beginning)
    assert not is_unfinished("\x1b[A")


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        (["j", "j", "k"], "b"),
        ([Key.DOWN], "b"),
        ([Key.UP], "a"),
        (["G", "j"], "d"),
        ([Key.PAGE_DOWN], "c"),
        (["G", "g"], "a"),
    ],
)
def test_keys_move_within_the_list(keys: list[str], chosen: str) -> None:
    assert after(keys).place.key == chosen


def test_the_chosen_row_is_followed_and_replaced_by_its_neighbour_when_it_has_gone() -> None:
    place = after(["j"]).place
    assert place.within(["new", "a", "b"]) == 2
    assert place.within(["a", "c"]) == 1
    assert place.within([]) == 0


def test_enter_opens_the_chosen_row_and_escape_returns_to_it() -> None:
    opened = after(["j", Key.ENTER])
    assert (opened.mode, opened.subject and opened.subject.key) == (Mode.DETAILS, "b")
    scrolled = after(["j", "j", "j"], opened, shown(last_scroll=2))
    assert scrolled.scroll == 2
    back = after([Key.ESCAPE], scrolled)
    assert (back.mode, back.subject, back.place.key) == (Mode.LIST, None, "b")
    assert after([Key.ENTER], rows=shown()).mode is Mode.LIST


def test_help_returns_to_what_was_open() -> None:
    assert after([Key.ENTER, "?", Key.ESCAPE]).mode is Mode.DETAILS
    assert after(["?", "?"]).mode is Mode.LIST


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ([Key.TAB], ListName.GROUPS),
        ([Key.BACK_TAB], ListName.NOT_SEEN),
        (["4"], ListName.TRANSACTIONS),
        (["9"], ListName.ALERTS),
        ([Key.ENTER, "3"], ListName.LOSSES),
    ],
)
def test_lists_are_chosen_from_anywhere(keys: list[str], name: ListName) -> None:
    state = after(keys)
    assert (state.name, state.mode, state.subject) == (name, Mode.LIST, None)


def test_a_filter_takes_every_character_and_belongs_to_its_list() -> None:
    typed = after(["/", "q", "p", "x", Key.BACKSPACE, Key.ENTER])
    assert (typed.mode, typed.filter, typed.is_over, typed.is_paused) == (
        Mode.LIST,
        "qp",
        False,
        False,
    )
    assert after(["2"], typed).filter == ""
    cleared = after([Key.ESCAPE], typed)
    assert (cleared.filter, cleared.is_over) == ("", False)
    assert after([Key.ESCAPE], cleared).is_over


def test_pause_and_refresh_are_requests() -> None:
    assert after(["p"]).is_paused
    assert not after(["p", "p"]).is_paused
    assert after(["r", "r"]).refreshes == 2
    assert after([Key.ENTER, "q"]).is_over
