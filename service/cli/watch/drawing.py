"""Draws the live screen as lines: pure, from what was fetched, what was chosen, the time and the size.

What is not current is never shown as if it were: then loss and alerts are NOT KNOWN, with what they were at which time.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from service.cli.status import completeness_words, firing_words, loss_words
from service.cli.watch.details import render as render_details
from service.cli.watch.fetching import Board, Details, ListName, Rows
from service.cli.watch.lists import NAMES, SHAPES, rows_of, subjects_of
from service.cli.watch.state import Mode, Shown, State
from service.terminal.parts import Line, Part, Row
from service.terminal.screen import print_parts
from service.terminal.words import duration, printable, time, timestamp_of

LEAST_BODY: Final = 3  # lines of a list, however low the screen is
NOTE_SHARE: Final = (
    4  # of the lines of a list, why there may be more of it takes at most one in so many
)
LONGEST_BLOCK: Final = 3  # lines of what is said above the list
LONGEST_CELL: Final = 0.5  # of the width, of all columns but the last one
GAP: Final = "  "
HELP: Final = (
    ("arrows, j, k", "choose a row, or scroll"),
    ("PgUp, PgDn", "a page up or down"),
    ("g, G", "the first or the last row"),
    ("Enter", "details of the row, and back"),
    ("Tab, 1 to 5", "another list"),
    ("/", "show only rows with these words"),
    ("Esc", "back; no filter; leave"),
    ("p", "pause, and go on"),
    ("r", "refresh now"),
    ("q, Ctrl-C", "leave"),
)
HINTS: Final = {
    Mode.LIST: "? help  q quit  Enter details  Tab list  / filter  p pause  r refresh",
    Mode.DETAILS: "Esc back  ? help  q quit  j/k scroll  r refresh",
    Mode.HELP: "Esc back  q quit",
    Mode.FILTER: "Enter keep  Esc no filter",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that the screen is drawn from."""

    state: State
    board: Board
    details: Details | None  # of the subject that was opened last; None: not fetched yet
    not_current: str | None  # why what is shown is not of now; None: it is
    now: datetime  # UTC, by the clock of this machine
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The lines of a screen from its top, and what keys can be about."""

    lines: Sequence[Text]
    shown: Shown


def draw(view: View) -> Frame:
    """Return the whole screen; no line is longer, and there are not more lines, than it has room for."""
    space = max(view.height - 1, 2)  # the last line is the footer
    is_list = view.state.mode in (Mode.LIST, Mode.FILTER)
    top = _top(view, min(space // 2 if is_list else space // 3, space - LEAST_BODY))
    top = top[: space - 1]
    page = space - len(top)
    if is_list:
        body, shown, where = _list_body(view, page)
    else:
        body, shown, where = _scrolled(view, page)
    blank = [Text("")] * max(page - len(body), 0)
    lines = [*top, *body[:page], *blank, _footer(view, where)]
    return Frame(lines=[_cut(line, view.width) for line in lines[-view.height :]], shown=shown)


def lines_of(parts: Iterable[Part], width: int) -> list[Text]:
    """Return parts as lines that are folded to this width."""
    drawn = io.StringIO()
    screen = Console(
        file=drawn, width=width, markup=False, emoji=False, highlight=False,
        force_terminal=True, color_system="standard", no_color=False, legacy_windows=False,
    )  # fmt: skip
    print_parts(parts, screen)
    lines = map(Text.from_ansi, drawn.getvalue().rstrip("\n").split("\n"))
    return [
        piece for line in lines for piece in line.wrap(screen, width, overflow="fold") or [Text("")]
    ]


def _top(view: View, most: int) -> list[Text]:
    """Return the lines above the list; on a low screen the least important blocks are left out."""
    is_list = view.state.mode in (Mode.LIST, Mode.FILTER)
    blocks = [  # with what is left out first
        (5, [_head(view)]),
        (0, [] if view.not_current is None else [Line(view.not_current, "bold yellow")]),
        (1, [_verdict(view, "LOSS     ", loss_words(view.board.overview))]),
        (2, [_verdict(view, "ALERTS   ", firing_words(view.board.overview))]),
        (4, list(_unseen(view))),
    ]
    drawn = [(rank, _few_lines(parts, view.width)) for rank, parts in blocks if parts]
    if is_list:
        drawn.append((3, _tabs(view)))
    for least in sorted((rank for rank, _ in drawn if rank > 1), reverse=True):
        if sum(len(lines) for _, lines in drawn) <= max(most, 1):
            break
        drawn = [(rank, lines) for rank, lines in drawn if rank != least]
    return [line for _, lines in drawn for line in lines]


def _few_lines(parts: Sequence[Part], width: int) -> list[Text]:
    """Return the first lines of parts: what matters is said first."""
    lines = lines_of(parts, width)
    if len(lines) > LONGEST_BLOCK:
        lines = [
            *lines[: LONGEST_BLOCK - 1],
            Text(f"{lines[LONGEST_BLOCK - 1].plain[: width - 1]}…"),
        ]
    return lines


def _head(view: View) -> Line:
    status, overview = view.board.overview.status, view.board.overview
    age = status["round"].get("age_seconds")
    passed = max(view.now - view.board.fetched_at, timedelta(0))
    ago = "" if age is None else f" ({duration(timedelta(seconds=int(age)) + passed)} ago)"
    if view.not_current is not None:
        end = ("NOT CURRENT", "bold yellow")
    else:
        end = completeness_words(overview)
    as_of = time(status["as_of"]) or "never"
    return Line(((f"{status.get('cluster')}", "bold"), f"  as of {as_of}{ago}  ", end))


def _verdict(view: View, label: str, words: tuple[str, str]) -> Line:
    """Return a line of the verdict: of a screen that is not current, what it was."""
    if view.not_current is None:
        return Line(((label, "bold"), words))
    was = f"; at {clock_time(view.board.fetched_at)}: {words[0]}"
    return Line(((label, "bold"), ("NOT KNOWN now", "bold yellow"), was))


def _unseen(view: View) -> Iterator[Line]:
    lines = view.board.lists[ListName.NOT_SEEN].rows
    if lines:
        first = printable(str(lines[0]["line"]))
        words = f"NOT SEEN {first}" + (f" and {len(lines) - 1} more: list 5" if lines[1:] else "")
        yield Line(words, "yellow")


def clock_time(at: datetime) -> str:
    """Return a time of the day, which is UTC."""
    return f"{at:%H:%M:%S} UTC"


def _tabs(view: View) -> list[Text]:
    line, lines = Text(), []
    for number, name in enumerate(NAMES, 1):
        rows = view.board.lists[name]
        label = f"{number} {SHAPES[name].title} {_count(rows)}"
        tab = Text(f"[{label}]", "bold reverse") if name is view.state.name else Text(f" {label} ")
        if line.cell_len and line.cell_len + tab.cell_len > view.width:
            lines.append(line)
            line = Text()
        line.append_text(tab)
    return [*lines, line]


def _count(rows: Rows) -> str:
    if not rows.unknown:
        return f"{len(rows.rows):,}"
    return f"{len(rows.rows):,}+?" if rows.rows else "?"


def _list_body(view: View, page: int) -> tuple[list[Text], Shown, str]:
    state = view.state
    rows = rows_of(view.board, state.name, state.filter)
    subjects = subjects_of(state.name, rows)
    notes = _note(view, rows)[: max(page // NOTE_SHARE, 1)] if rows.unknown else []
    space = max(page - 1 - len(notes), 1)  # a line of headings
    shown = Shown(subjects=subjects, page=space, last_scroll=0)
    if not rows.rows:
        return [*lines_of([_empty(view, rows)], view.width), *notes], shown, ""
    chosen = state.place.within([subject.key for subject in subjects])
    first = max(min(chosen - space // 2, len(subjects) - space), 0)
    window = rows.rows[first : first + space]
    where = f"{chosen + 1}/{len(subjects)}"
    return [*_table(view, window, chosen - first), *notes], shown, where


def _note(view: View, rows: Rows) -> list[Text]:
    more = f" (and {len(rows.unknown) - 1} more)" if rows.unknown[1:] else ""
    words = "there may be more" if rows.rows else "NOT KNOWN"
    return _few_lines([Line(f"{words}: {rows.unknown[0]}{more}", "yellow")], view.width)


def _empty(view: View, rows: Rows) -> Line:
    if view.state.filter and view.board.lists[view.state.name].rows:
        return Line(f"No row has {view.state.filter!r}.")
    if rows.unknown:
        return Line("No row is known.")
    empty = SHAPES[view.state.name].empty
    if view.not_current is None:
        return Line(empty)
    return Line(f"Not known now; at {clock_time(view.board.fetched_at)}: {empty}")


def _table(view: View, window: Sequence[Row], chosen: int) -> Iterator[Text]:
    """Yield headings and rows; what does not fit is cut off at the right."""
    shape = SHAPES[view.state.name]
    columns = shape.columns(timestamp_of(view.board.overview.status.get("now")))
    cells = [[printable(column.cell(row)) for column in columns] for row in window]
    headings = [column.heading for column in columns]
    limit = int(view.width * LONGEST_CELL)
    widths = [min(max(map(cell_len, each)), limit) for each in zip(headings, *cells, strict=True)]
    space = view.width - len(GAP)
    yield Text(GAP + _joined(headings, widths, space), "dim")
    for number, (row, texts) in enumerate(zip(window, cells, strict=True)):
        is_chosen = number == chosen
        style = "dim" if view.not_current is not None else shape.style(row) or ""
        line = Text(("> " if is_chosen else "  ") + _joined(texts, widths, space), style)
        if is_chosen:
            line.stylize("reverse")
        yield line


def _joined(cells: Sequence[str], widths: Sequence[int], width: int) -> str:
    """Return cells below their headings; the last one has what is left of the width."""
    padded = [_padded(cell, each) for cell, each in zip(cells[:-1], widths[:-1], strict=True)]
    before = "".join(f"{cell}{GAP}" for cell in padded)
    return before + shortened(cells[-1], width - cell_len(before))


def _padded(cell: str, width: int) -> str:
    return shortened(cell, width) + " " * max(width - cell_len(cell), 0)


def shortened(words: str, width: int) -> str:
    """Return words that are too long without their middle: names differ at their ends."""
    if cell_len(words) <= width:
        return words
    end = max(width // 2, 0)
    begin = max(width - 1 - end, 0)
    return f"{words[:begin]}…{words[len(words) - end :]}"


def _scrolled(view: View, page: int) -> tuple[list[Text], Shown, str]:
    lines = _help(view) if view.state.mode is Mode.HELP else _details(view)
    last = max(len(lines) - page, 0)
    first = min(view.state.scroll, last)
    shown = Shown(subjects=(), page=page, last_scroll=last)
    where = f"{first + 1}-{min(first + page, len(lines))}/{len(lines)}" if last else ""
    return lines[first : first + page], shown, where


def _help(view: View) -> list[Text]:
    return [Text(f"{keys:<14}{words}") for keys, words in HELP] + lines_of(
        [Line("It only reads. Commands that change something are shown, to be copied.")], view.width
    )


def _details(view: View) -> list[Text]:
    if view.details is None or view.details.subject != view.state.subject:
        return [Text("waiting for the answer ...")]
    lines = lines_of(render_details(view.details, view.board.overview.server), view.width)
    if view.not_current is not None:
        for line in lines:
            line.stylize("dim")
    return lines


def _footer(view: View, where: str) -> Text:
    state = view.state
    if state.mode is Mode.FILTER:
        return Text.assemble(
            (f"/{printable(state.filter)}_", "bold"), GAP, (HINTS[state.mode], "dim")
        )
    words = f"/{printable(state.filter)}  " if state.filter and state.mode is Mode.LIST else ""
    return Text.assemble((words, "bold"), where, GAP if where else "", (HINTS[state.mode], "dim"))


def _cut(line: Text, width: int) -> Text:
    line = line.copy()
    line.no_wrap = True
    line.truncate(max(width, 1), overflow="ellipsis")
    return line
