"""Plays the story: does each step, waits until Tidemark's answers show it, and sums up."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.live import Live

from rules.errors import SandboxError
from service.runtime import clock
from service.runtime.data_directory import make_folder
from service.sandbox.demo.act import Act, Observation, Step
from service.sandbox.demo.acts import ACTS, GROUPS
from service.sandbox.demo.api import Api, RoundStatus
from service.sandbox.demo.running_demo import demo_folder, leave_running, require_none_running
from service.sandbox.demo.screen import screen
from service.sandbox.demo.stage import Stage, open_stage

POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a step."""

    did: str
    saw: str | None  # None: not in time
    seconds: float


def run_story(stop: threading.Event, acts: Sequence[Act] = ACTS, *, keep: bool) -> bool:
    """Play the story; True if every step was seen. `stop` ends it early."""
    began = clock.monotonic()
    is_left = True  # the logs explain what failed
    folder = _make_folder(keep=keep)
    try:
        click.echo("Starting a controller, three brokers, a load and Tidemark ...")
        with open_stage(folder, partial(click.echo, err=True)) as stage:
            click.echo(
                f"All of it runs after {clock.monotonic() - began:.1f} s: brokers {stage.servers}; "
                f"Tidemark {stage.address}"
            )
            was_seen = _play(stage, stop, acts)
            if keep and not stop.is_set():
                leave_running(stage)
                return was_seen
            click.echo("\nEnding everything ...")
        is_left = not (was_seen or stop.is_set())
    finally:
        if is_left and not stop.is_set():
            click.echo(f"Logs are in {folder}", err=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    files = "" if is_left else " and no file"
    click.echo(f"The end after {clock.monotonic() - began:.0f} s: no process{files} is left.")
    return was_seen


def _play(stage: Stage, stop: threading.Event, acts: Sequence[Act]) -> bool:
    with Api(stage.address) as api:
        story = Story(stage, api, stop, acts)
        with _stderr_in(stage.folder / "clients.log"):
            was_seen = story.play()
        story.sum_up()
    return was_seen


class Story:
    """Plays the acts on a stage."""

    def __init__(self, stage: Stage, api: Api, stop: threading.Event, acts: Sequence[Act]) -> None:
        self._stage = stage
        self._acts = acts
        self._api = api
        self._stop = stop
        self._console = Console(highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._outcomes: list[tuple[Act, list[Outcome]]] = []
        self._newest: RoundStatus | None = None

    def play(self) -> bool:
        """Play all acts until one step is not seen or somebody stops the story."""
        for number, act in enumerate(self._acts, 1):
            self._print(f"\n{number}. {act.title}", "bold")
            outcomes: list[Outcome] = []
            self._outcomes.append((act, outcomes))
            for step in act.steps:
                if self._stop.is_set():
                    return False
                outcomes.append(self._play_step(step))
                if outcomes[-1].saw is None:
                    self._show_last()
                    return False
        return True

    def sum_up(self) -> None:
        """Print what was seen."""
        if self._stop.is_set():
            self._print("\nInterrupted.")
            return
        self._print("\nSummary", "bold")
        for number, (act, outcomes) in enumerate(self._outcomes, 1):
            was_seen = len(outcomes) == len(act.steps) and all(outcome.saw for outcome in outcomes)
            style, result = ("green", "seen") if was_seen else ("bold red", "NOT SEEN")
            seconds = sum(outcome.seconds for outcome in outcomes)
            self._print(f"  {result:8}  {number}. {act.title}, {seconds:.0f} s", style)
        for act in self._acts[len(self._outcomes) :]:
            self._print(f"  not run   {act.title}", "bold red")

    def _play_step(self, step: Step) -> Outcome:
        began = clock.monotonic()
        first = self._api.round() or 0
        if step.do is not None:
            step.do(self._stage)
        self._print(f"   did  {step.did}")
        saw = self._watch(step, first, began + step.limit_seconds)
        outcome = Outcome(step.did, saw, clock.monotonic() - began)
        if saw is not None:
            self._print(f"   saw  {saw}  [{outcome.seconds:.1f} s]", "green")
        elif not self._stop.is_set():
            self._print(f"   NOT SEEN within {step.limit_seconds:.0f} s", "bold red")
        return outcome

    def _watch(self, step: Step, after_round: int, deadline: float) -> str | None:
        """Observe every round that was made since the step, until it is seen."""
        rounds: list[RoundStatus] = []
        with self._drawing():
            while clock.monotonic() < deadline and not self._stop.is_set():
                status = self._next(rounds[-1].round if rounds else after_round)
                if status is None:
                    self._stop.wait(POLL_SECONDS)
                    continue
                rounds.append(status)
                self._draw(status)
                saw = step.seen(Observation(self._stage, rounds))
                if saw is not None:
                    return saw
        return None

    def _next(self, after_round: int) -> RoundStatus | None:
        number = self._api.round()
        if number is None or number <= after_round:
            return None
        return self._api.observe(GROUPS)

    @contextlib.contextmanager
    def _drawing(self) -> Iterator[None]:
        """Show the live table while a step is awaited, on a terminal."""
        if not self._console.is_terminal:
            yield
            return
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        with self._live:
            if self._newest is not None:
                self._draw(self._newest)
            yield

    def _draw(self, status: RoundStatus) -> None:
        self._newest = status
        if self._live.is_started:
            self._live.update(screen(status), refresh=True)

    def _print(self, line: str, style: str = "") -> None:
        """Print a line whole: a terminal folds it, a pipe does not."""
        self._console.print(line, style=style, soft_wrap=True)

    def _show_last(self) -> None:
        if self._newest is not None:
            self._console.print(screen(self._newest))
        for line in self._stage.errors():
            self._print(f"   log  {line}", "red")


@contextlib.contextmanager
def _stderr_in(path: Path) -> Iterator[None]:
    """Redirect stderr to a file: Kafka's C client logs there what the faults do to it."""
    saved = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _make_folder(*, keep: bool) -> Path:
    if not keep:
        return Path(tempfile.mkdtemp(prefix="tidemark-demo-"))
    require_none_running()
    folder = demo_folder()
    try:
        make_folder(folder)
    except OSError as exc:
        raise SandboxError(f"cannot use {folder}: {exc.strerror or exc}") from exc
    return folder
