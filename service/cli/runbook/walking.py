"""Walks through a runbook: reads what can be read, and changes nothing without an answer.

A mitigation is run only when a person at the terminal has said yes to this command; without a terminal all of them are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from service.cli.runbook.running import SECONDS, Result, Show
from service.cli.runbook.surroundings import NotRunnableError, Surroundings
from service.cli.runbook.transcript import Transcript
from service.runbooks.commands import Command, Effect, fill, fill_text, join
from service.runbooks.form import Block, BlockKind, Prose, Runbook
from service.terminal.exit_codes import ExitCode
from service.terminal.output import OutputError

Ask = Callable[[str], bool]
Run = Callable[[Sequence[str], Show, float | None], Result]  # with its time limit in seconds
# A command of ours that ends so has not found anything out: exit codes 2 to 5.
FAILED: Final = (
    ExitCode.USAGE,
    ExitCode.SETTINGS,
    ExitCode.UNREACHABLE,
    ExitCode.AUTHENTICATION,
)


@dataclass(slots=True, kw_only=True)
class Walk:
    """One pass through a runbook for one alert."""

    runbook: Runbook
    values: Mapping[str, str]  # of the placeholders
    surroundings: Surroundings
    say: Callable[[str, str], None]  # a line, and its style
    run: Run | None  # None: nothing is run
    ask: Ask | None = None  # None: nobody is at the terminal
    why_unattended: str = "nobody is at the terminal"
    transcript: Transcript | None = None
    is_filled: bool = True  # whether `values` are those of an alert
    is_shown: bool = (
        False  # whether it is only read by a person, so that nothing is said of running
    )
    left_out: list[str] = field(default_factory=list)  # diagnoses that did not run to their end
    has_changed: bool = False  # whether a mitigation was run
    _may_verify: bool | None = None  # None: not decided yet

    def walk(self) -> None:
        """Go through all sections in order; an interruption is noted and raised again."""
        try:
            for name, items in self.runbook.sections.items():
                self.say("", "")
                self.say(name.upper(), "bold")
                self._note(f"section {name}")
                for item in items:
                    self._item(item, is_verifying=name == "Verification")
        except KeyboardInterrupt:
            self._note("interrupted")
            raise
        self._note("end")

    def _item(self, item: Prose | Block, *, is_verifying: bool) -> None:
        if isinstance(item, Prose):
            for line in item.lines:
                self.say(self._text(line), "")
            return
        reason = self.values.get("reason")
        if not item.is_for(reason):
            return
        for line in item.commands:
            command = fill(line, self.values)
            if item.kind is BlockKind.MITIGATION:
                self._mitigate(command)
            elif is_verifying and not self._verifies():
                self._show_only(command, "it is for after the mitigation")
            else:
                self._diagnose(command)
        self.say(f"  Expect: {self._text(item.expect)}", "cyan")
        self._note(f"expect: {self._text(item.expect)}")

    def _text(self, text: str) -> str:
        return fill_text(text, self.values) if self.is_filled else text

    def _verifies(self) -> bool:
        """Whether the mitigation is done: something was changed here, or a person says so."""
        if self.run is None or self.has_changed:
            return True
        if self.ask is None:
            return False
        if self._may_verify is None:
            self._may_verify = self.ask("  Is the mitigation done? Verify now?")
            self._note("confirm: verify now", ["yes" if self._may_verify else "no"])
        return self._may_verify

    def _diagnose(self, command: Command) -> None:
        if self.is_shown:
            self._show_only(command, None)
            return
        if command.effect is not Effect.READS:
            self._leave_out(command, "not known to read only: run it by hand")
            return
        try:
            program = self.surroundings.program(command)
        except NotRunnableError as why:
            self._leave_out(command, str(why))
            return
        if self.run is None:
            self._show_only(command, None)
            return
        result = self._execute(self.run, command, program, SECONDS)
        is_ours = command.kafka_tool is None
        has_failed = result.exit_code in FAILED if is_ours else result.exit_code != 0
        if result.error is not None or has_failed:
            self.left_out.append(str(command))

    def _leave_out(self, command: Command, why: str) -> None:
        self.left_out.append(str(command))
        self._show_only(command, why)

    def _mitigate(self, command: Command) -> None:
        """Show a command that changes something; run it if a person says yes to it."""
        run = self.run
        if run is None or self.ask is None:
            self._show_only(command, None if self.is_shown else self.why_unattended)
            return
        if command.effect is Effect.UNKNOWN:
            self._show_only(command, "run it by hand")
            return
        try:
            program = self.surroundings.program(command)
        except NotRunnableError as why:
            self._show_only(command, str(why))
            return
        line = self._line(command)
        self.say(f"  $ {line}", "bold yellow")
        is_yes = self.ask("  This CHANGES something. Run it?")
        self._note(f"confirm: run {line}", ["yes" if is_yes else "no"])
        if is_yes:
            self.has_changed = True
            try:
                self._execute(run, command, program, None)
            except KeyboardInterrupt:
                self.say("  interrupted: the change may be half done", "bold red")
                raise

    def _execute(
        self, run: Run, command: Command, program: Sequence[str], seconds: float | None
    ) -> Result:
        """Run a command to its end, also where its output cannot be shown or kept any more."""
        line = self._line(command)
        self.say(f"  $ {line}", "bold")
        self._note(f"run {line}")
        failures: list[OSError | OutputError] = []

        def show(text: str) -> None:
            try:
                self._output(text)
            except (OSError, OutputError) as exc:
                failures.append(exc)

        result = run(program, show, seconds)
        if failures:
            raise failures[0]
        ended = result.error or f"exit code {result.exit_code}"
        self._note(ended)
        if result.exit_code != 0 or result.error is not None:
            self.say(f"  {ended}", "yellow")
        return result

    def _output(self, line: str) -> None:
        self.say(f"  | {line}", "")
        if self.transcript is not None:
            self.transcript.note_line(line)

    def _show_only(self, command: Command, why: str | None) -> None:
        """Show a command that is not run, in both forms if it is one of Kafka's tools."""
        line = self._line(command)
        self.say(f"  $ {line}", "bold")
        sandbox = self.surroundings.with_sandbox(command)
        if sandbox is not None:
            shown = join(sandbox, is_template=not self.is_filled)
            self.say(f"    in the sandbox: {shown}", "dim")
        if why is not None:
            self.say(f"    not run: {why}", "yellow")
        self._note(f"not run: {why or 'only shown'}", [line])

    def _line(self, command: Command) -> str:
        return join(self.surroundings.complete(command), is_template=not self.is_filled)

    def _note(self, event: str, lines: Sequence[str] = ()) -> None:
        if self.transcript is not None:
            self.transcript.note(event, lines)
