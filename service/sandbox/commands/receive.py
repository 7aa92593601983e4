"""`tidemark sandbox receive`: a receiver of notifications, to see what arrives, and in which order.

Only click is imported here at the top: the help has to answer at once.
"""

from __future__ import annotations

import contextlib
import json
import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import click

from collectors.naming import counted
from rules.errors import SandboxError, SettingsError
from service.sandbox.commands.options import print_line
from service.terminal.stopping import stop_signals
from service.terminal.words import printable

if TYPE_CHECKING:
    import threading

    from service.alerting.receivers.standard_webhooks import SigningSecret
    from service.sandbox.receiving.recording import Received

POLL_SECONDS: Final = 0.1


def _secrets(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[SigningSecret, ...]:
    del ctx, param
    if not values:
        return ()
    from service.alerting.receivers.standard_webhooks import SigningSecret  # noqa: PLC0415 - help stays fast

    try:
        return tuple(SigningSecret(value) for value in values)
    except SettingsError as exc:
        raise click.BadParameter(str(exc)) from exc


@click.command("receive")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, show_default=True,
    help="Port on loopback; 0 is any free one.",
)  # fmt: skip
@click.option(
    "--fail", type=click.IntRange(0), default=0, metavar="N",
    help="Answer the first N requests with 500, to see them come again.",
)  # fmt: skip
@click.option(
    "--secret", "secrets", multiple=True, metavar="whsec_...", callback=_secrets,
    help="Verify signatures with it, and answer 401 to what it has not signed. Give it twice "
    "while a secret is changed.",
)  # fmt: skip
@click.option(
    "--record", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Append all of each request to a file, as a line of JSON.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Choice(["lines", "json"]), default="lines", show_default=True,
    help="A line for people, or all of it as a line of JSON.",
)  # fmt: skip
def command(
    *, port: int, fail: int, secrets: tuple[SigningSecret, ...], record: Path | None, output: str
) -> None:
    """Receive notifications on this machine until Ctrl-C, and print a line for each, in order.

    It takes every form that Tidemark sends: webhooks, pushes to an Alertmanager, events for
    PagerDuty, messages for Slack. A line has the number, the time, the webhook-id, what came of
    its signature, the answer, and what it is about. The address is printed first, with the
    settings that let Tidemark send there.

    \b
    Examples:
      tidemark sandbox receive
      tidemark sandbox receive --port 9000 --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
      tidemark sandbox receive --fail 5     the same webhook-id comes again, until it is taken
      tidemark sandbox receive -o json | jq '.body.alerts[].labels'
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from service.runtime import clock  # noqa: PLC0415 - help stays fast
    from service.sandbox.receiving.recording import Recorder  # noqa: PLC0415 - same
    from service.sandbox.receiving.server import receiving  # noqa: PLC0415 - same

    received: queue.SimpleQueue[Received] = queue.SimpleQueue()
    tally = _Tally(_as_json if output == "json" else line_of)
    with stop_signals() as stop, _opened(record) as sink:
        recorder = Recorder(
            utc_now=clock.utc_now, hand_on=received.put, secrets=secrets, fail=fail, sink=sink
        )
        with receiving(recorder, port) as address:
            print_line(f"Receiving at {address}; Ctrl-C ends it. Settings that send there:")
            print_line(settings_for(address, is_signed=bool(secrets)))
            _print_until(stop, received, tally)
    print_line(tally.summary())


def settings_for(address: str, *, is_signed: bool) -> str:
    """Return the settings by which a Tidemark on this machine sends here; no secret is repeated."""
    lines = [
        "[alerting]",
        'default_receiver = "local"',
        'private_ranges = "127.0.0.1/32"',
        "[[alerting.receivers]]",
        'name = "local"',
        f'url = "{address}"',
        *(['signing_secrets = "..."  # the one that was given here'] if is_signed else ()),
    ]
    return "\n".join(f"  {line}" for line in lines)


class _Tally:
    """Prints what comes and counts it."""

    def __init__(self, format_line: Callable[[Received], str]) -> None:
        self._format = format_line
        self._requests = 0
        self._taken = 0
        self._repeats = 0

    def take(self, request: Received) -> None:
        self._requests += 1
        self._taken += request.is_taken
        self._repeats += request.is_repeat
        click.echo(self._format(request))

    def summary(self) -> str:
        """Return what came in all."""
        rejected = self._requests - self._taken
        notifications = counted(self._taken - self._repeats, "notification")
        return (
            f"{notifications} in {counted(self._requests, 'request')}; rejected: {rejected}; "
            f"came again after they had been taken: {self._repeats}"
        )


def line_of(request: Received) -> str:
    """Return a request as one line: number, time, webhook-id, signature, answer, what it says."""
    from service.sandbox.receiving.bodies import document_of, parse_body  # noqa: PLC0415 - see above

    parsed = parse_body(document_of(request.body))
    again = (
        "AGAIN "
        if request.is_repeat
        else f"attempt {request.attempt} "
        if request.attempt > 1
        else ""
    )
    why = "" if parsed.reason is None else f" ({parsed.reason})"
    return printable(
        f"{request.number:>3}  {request.at:%Y-%m-%d %H:%M:%S} UTC  {request.webhook_id or 'no webhook-id'}  "
        f"signature {request.signature}  {int(request.answered)}  {again}{parsed.title}{why}"
    )


def _as_json(request: Received) -> str:
    return json.dumps(request.row(), separators=(",", ":"))


def _print_until(
    stop: threading.Event, received: queue.SimpleQueue[Received], tally: _Tally
) -> None:
    """Print what comes until it is stopped, and then what is left."""
    while not stop.is_set():
        with contextlib.suppress(queue.Empty):
            tally.take(received.get(timeout=POLL_SECONDS))
    while not received.empty():
        tally.take(received.get())


@contextlib.contextmanager
def _opened(path: Path | None) -> Iterator[TextIO | None]:
    """Open a file to append to, readable for its owner alone: bodies may hold secrets."""
    if path is None:
        yield None
        return
    try:
        path.touch(mode=0o600)
        file = path.open("a", encoding="utf-8")
    except OSError as exc:
        raise SandboxError(f"cannot write {path}: {exc.strerror or exc}") from exc
    with file:
        yield file
