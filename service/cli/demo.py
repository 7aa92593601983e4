"""`tidemark sandbox demo`: the main job on real brokers, in a minute, with a clean end.

Only click is imported here at the top: the help has to answer at once.
"""

from __future__ import annotations

import click

from service.cli.exit_codes import ExitCode
from service.cli.parameters import FiniteRange


@click.command("demo")
@click.option(
    "--seconds",
    type=FiniteRange(2, 120),
    default=10.0,
    show_default=True,
    help="How long each act is shown.",
)
def command(seconds: float) -> int:
    """Start a cluster of its own, load it, and show its true offsets while two things happen.

    Act 1: a healthy load. Act 2: an open transaction holds the last stable offset. Act 3: two
    followers freeze, and the log end offset runs ahead of the high watermark. Everything is
    cleaned up at the end and at Ctrl-C. Exit code 0 only if each act was seen in the offsets.

    \b
    Examples:
      tidemark sandbox demo
      tidemark sandbox demo --seconds 30
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from service.cli.demo_story import DemoStory  # noqa: PLC0415 - same
    from service.cli.stopping import stop_signals  # noqa: PLC0415 - help stays fast

    with stop_signals() as stop:
        was_seen = DemoStory(stop, act_seconds=seconds).tell()
    if stop.is_set():
        return ExitCode.INTERRUPTED
    return ExitCode.OK if was_seen else ExitCode.INCOMPLETE
