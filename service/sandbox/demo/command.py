"""`tidemark sandbox demo`: the main job on real brokers, as a story with a clean end.

Only click is imported here at the top: the help has to answer at once.
"""

from __future__ import annotations

import click

from service.terminal.exit_codes import ExitCode


@click.command("demo")
@click.option("--keep", is_flag=True, help="Leave all running at the end and print the addresses.")
@click.option("--acts", type=click.IntRange(1), metavar="N", help="Play only the first N acts.")
@click.option("--end", is_flag=True, help="End what an earlier --keep left running, and remove it.")
def command(*, keep: bool, acts: int | None, end: bool) -> int:
    """Start a cluster, a load and Tidemark itself, and play a story of faults in about four minutes.

    A healthy pipeline; a group that is too slow; an open transaction that holds the last stable
    offset below the high watermark, and whom it blocks; one that hangs, and the command that ends it;
    followers that freeze, so that the log end offset runs ahead of the high watermark; a broker that
    is killed and comes back; committed records that are lost, to the offset; the notifications that
    a receiver got of all that, in order; and what is usual, learnt on Spark from simulated weeks.
    Each step says what was done, what Tidemark saw over its HTTP API, and how long that took. Exit
    code 0 only if every step was seen. Everything is cleaned up at the end and at Ctrl-C, unless
    --keep.

    \b
    Examples:
      tidemark sandbox demo
      tidemark sandbox demo --keep     then try the addresses it prints
      tidemark sandbox demo --acts 1   a short demo
      tidemark sandbox demo --end
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from service.sandbox.demo.acts import ACTS  # noqa: PLC0415 - same
    from service.sandbox.demo.running_demo import end_running_demo  # noqa: PLC0415 - help stays fast
    from service.sandbox.demo.story import run_story  # noqa: PLC0415 - same
    from service.terminal.stopping import stop_signals  # noqa: PLC0415 - same

    if end:
        return ExitCode.OK if end_running_demo() else ExitCode.SANDBOX
    with stop_signals() as stop:
        was_seen = run_story(stop, ACTS[:acts], keep=keep)
    if stop.is_set():
        return ExitCode.INTERRUPTED
    return ExitCode.OK if was_seen else ExitCode.INCOMPLETE
