"""`tidemark watch`: what `status` shows, live, with lists to move in and details to open. It only reads.

Only click is imported at the top: the help answers at once.
"""

from __future__ import annotations

from typing import Any

import click

from service.cli.server.server_options import SERVER, TOKEN_FILE, client_of, context_option
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import no_color_option
from service.terminal.parameters import DAY_SECONDS, FiniteRange


@click.command("watch")
@click.option(
    "--interval", type=FiniteRange(1.0, DAY_SECONDS), metavar="SECONDS",
    help="From one refresh to the next. Default: as often as the Tidemark makes a round.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Print what `tidemark status` prints, and end.")
@no_color_option
@context_option
@SERVER
@TOKEN_FILE
def command(*, interval: float | None, once: bool, **options: Any) -> int:
    """Show what is wrong, live: alerts, groups by lag, losses, open transactions, what is not seen.

    \b
    Examples:
      tidemark watch
      tidemark --context prod watch --interval 5
      tidemark watch --once

    \b
    arrows, j, k    choose a row, or scroll     PgUp, PgDn, g, G  further
    Enter           details of the row: of an alert what `alerts show` prints
    Tab, 1 to 5     another list                /  show only rows with these words
    p               pause, and go on            r  refresh now
    ?               help                        q, Esc, Ctrl-C  leave

    It only reads; commands that change something are shown, to be copied. When the Tidemark stops
    answering, the last screen stays, with NOT CURRENT since when, and nothing on it counts as known; it
    recovers by itself. Without a terminal it prints once what `tidemark status` prints, with its exit
    codes. Exits with 0 when left by a key, with 130 by Ctrl-C, and with 4 or 5 if the first query fails.
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from service.cli.watch.terminal import Terminal, can_show_screens  # noqa: PLC0415 - keeps `--help` fast

    if once or not can_show_screens():
        from service.cli.status import print_status  # noqa: PLC0415 - same

        return print_status({**options, "output": "table"})

    from service.cli.watch.fetching import fetch_board  # noqa: PLC0415 - same
    from service.cli.watch.refreshing import Refresher  # noqa: PLC0415 - same
    from service.cli.watch.session import run_screen  # noqa: PLC0415 - same
    from service.runtime import clock  # noqa: PLC0415 - same
    from service.terminal.stopping import stop_signals  # noqa: PLC0415 - same

    with client_of(options) as api:
        board = fetch_board(api, clock.utc_now())
        with stop_signals() as stop, Terminal() as terminal:
            refresher = Refresher(api, board, interval=interval, wake=terminal.wake)
            run_screen(terminal, refresher, stop)
    if stop.is_set():
        raise KeyboardInterrupt
    return ExitCode.OK
