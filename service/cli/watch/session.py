"""Shows screens and takes keys, until a key or a signal ends it."""

from __future__ import annotations

from threading import Event

from service.cli.watch.drawing import Frame, View, draw
from service.cli.watch.refreshing import Refresher
from service.cli.watch.state import State, press
from service.cli.watch.terminal import Terminal
from service.runtime import clock


def run_screen(terminal: Terminal, refresher: Refresher, stop: Event) -> None:
    """Redraw whenever a key is pressed, an answer arrives or a second is over; `stop` is set by a signal."""
    state = State()
    while not (state.is_over or stop.is_set()):
        refresher.step(state)
        terminal.show(_frame(terminal, refresher, state).lines)
        for key in terminal.wait(refresher.seconds_left()):
            state = press(state, key, _frame(terminal, refresher, state).shown)


def _frame(terminal: Terminal, refresher: Refresher, state: State) -> Frame:
    width, height = terminal.size
    now = clock.utc_now()
    view = View(
        state=state,
        board=refresher.board,
        details=refresher.details(state),
        not_current=refresher.not_current(state, now),
        now=now,
        width=width,
        height=height,
    )
    return draw(view)
