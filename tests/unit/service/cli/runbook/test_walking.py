"""What a walk runs, what it only shows, and what its transcript keeps."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.cli.runbook.running import SECONDS, Result, Show, run
from service.cli.runbook.surroundings import Surroundings
from service.cli.runbook.transcript import Transcript, default_path
from service.cli.runbook.walking import Walk
from service.runbooks.form import SECTIONS, parse
from service.terminal.output import OutputError

NOW = datetime(2026, 1, 31, 3, tzinfo=UTC)
ABORT = "kafka-transactions.sh abort --topic={topic} --partition=0 --start-offset=5"
BODIES = {
    "Diagnosis": "```sh diagnosis\ntidemark tx hanging\n```\nExpect: {topic}.\n\n"
    "```sh diagnosis\nkubectl get pods\n```\nExpect: pods.\n\n"
    "```sh diagnosis when=confirming\ntidemark tx ls\n```\nExpect: nothing.",
    "Mitigation": f"```sh mitigation\n{ABORT}\n```\nExpect: no output.\n\n"
    "```sh mitigation\nreboot\n```\nExpect: the worst.",
    "Verification": "```sh diagnosis\ntidemark tx hanging\n```\nExpect: nothing.",
}
TEXT = "---\nrule: transaction_hanging\n---\n" + "".join(
    f"## {name}\n\n{BODIES.get(name, 'Of {topic}.')}\n\n" for name in SECTIONS
)


class Terminal:
    """A terminal on which a person gives these answers, and commands that print two lines."""

    def __init__(self, *answers: bool, exit_code: int = 11) -> None:
        self.exit_code = exit_code
        self.limits: list[float | None] = []
        self.lines: list[str] = []
        self.ran: list[str] = []
        self.questions: list[str] = []
        self._answers = list(answers)

    def say(self, line: str, _style: str) -> None:
        self.lines.append(line)

    def ask(self, question: str) -> bool:
        self.questions.append(question)
        return self._answers.pop(0)

    def run(self, words: Sequence[str], show: Show, seconds: float | None) -> Result:
        self.ran.append(" ".join(words[-3:]))
        self.limits.append(seconds)
        show("one")
        show("two \x1b[2J")
        return Result(exit_code=self.exit_code, lines=("one", "two"))


@pytest.fixture
def tools(tmp_path: Path) -> str:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kafka-transactions.sh").touch(0o755)
    return str(folder)


@pytest.fixture
def transcript(tmp_path: Path) -> Iterator[Transcript]:
    with Transcript(tmp_path / "t.txt", lambda: NOW) as opened:
        yield opened


def walk_of(terminal: Terminal, tools: str, transcript: Transcript, *, attended: bool) -> Walk:
    return Walk(
        runbook=parse(TEXT, "x.md", ("transaction_hanging",)),
        values={"topic": "a;b", "reason": "hanging"},
        surroundings=Surroundings(bootstrap_servers="b1:9092", kafka_tools=tools),
        say=terminal.say,
        run=terminal.run,
        ask=terminal.ask if attended else None,
        transcript=transcript,
    )


def test_without_a_person_nothing_is_changed(tools: str, transcript: Transcript) -> None:
    terminal = Terminal()
    walk = walk_of(terminal, tools, transcript, attended=False)
    walk.walk()
    assert terminal.ran == ["hanging --bootstrap-servers b1:9092"]  # nor is anything verified
    assert walk.left_out == ["kubectl get pods"]
    shown = "\n".join(terminal.lines)
    assert "abort '--topic=a;b' --partition=0" in shown
    assert "tidemark sandbox tool kafka-transactions.sh abort '--topic=a;b'" in shown
    assert shown.count("not run: nobody is at the terminal") == 2
    assert "Expect: a;b." in shown
    assert "tx ls" not in shown  # is for another reason


def test_a_mitigation_runs_after_a_yes_and_is_verified(tools: str, transcript: Transcript) -> None:
    terminal = Terminal(True)
    walk_of(terminal, tools, transcript, attended=True).walk()
    assert terminal.ran == [
        "hanging --bootstrap-servers b1:9092",
        "--topic=a;b --partition=0 --start-offset=5",
        "hanging --bootstrap-servers b1:9092",
    ]
    assert len(terminal.questions) == 1  # what we do not know is never offered
    assert terminal.limits == [SECONDS, None, SECONDS]  # nothing is changed by half


def test_after_a_no_a_person_decides_whether_to_verify(tools: str, transcript: Transcript) -> None:
    terminal = Terminal(False, True)
    walk_of(terminal, tools, transcript, attended=True).walk()
    assert len(terminal.ran) == 2
    assert "reboot" not in " ".join(terminal.ran)


@pytest.mark.parametrize(("code", "is_left_out"), [(0, False), (12, False), (4, True), (5, True)])
def test_a_read_that_reached_nothing_is_left_out(
    code: int, *, is_left_out: bool, tools: str, transcript: Transcript
) -> None:
    walk = walk_of(Terminal(exit_code=code), tools, transcript, attended=False)
    walk.walk()
    assert ("tidemark tx hanging" in walk.left_out) is is_left_out


def test_a_full_disk_does_not_end_a_mitigation(
    tools: str, transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(True)
    ended: list[str] = []

    def run(words: Sequence[str], show: Show, seconds: float | None) -> Result:
        if seconds is None:
            monkeypatch.setattr(transcript, "note_line", full)
        result = terminal.run(words, show, seconds)
        ended.append(words[-1])
        return result

    def full(_line: str) -> None:
        raise OutputError("no space left on device")

    walk = walk_of(terminal, tools, transcript, attended=True)
    walk.run = run
    with pytest.raises(OutputError):
        walk.walk()
    assert ended[-1] == "--start-offset=5"


def test_the_transcript_has_times_commands_outputs_and_answers(
    tools: str, transcript: Transcript
) -> None:
    walk_of(Terminal(False, False), tools, transcript, attended=True).walk()
    text = transcript.path.read_text(encoding="utf-8")
    command = "tidemark tx hanging --bootstrap-servers b1:9092"
    assert (
        f"2026-01-31T03:00:00Z run {command}\n    one\n    two \\u001b[2J\n"
        "2026-01-31T03:00:00Z exit code 11\n" in text
    )
    assert "confirm: run kafka-transactions.sh --bootstrap-server b1:9092 abort" in text
    assert "    no\n" in text
    assert stat.S_IMODE(transcript.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("place", ["run", "ask"])
def test_ctrl_c_keeps_the_transcript(place: str, tools: str, transcript: Transcript) -> None:
    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    walk = walk_of(Terminal(), tools, transcript, attended=True)
    setattr(walk, place, interrupt)
    with pytest.raises(KeyboardInterrupt):
        walk.walk()
    assert transcript.path.read_text(encoding="utf-8").endswith("Z interrupted\n")


def test_a_transcript_that_cannot_be_written_is_an_error_of_output(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a directory"):
        Transcript(tmp_path, lambda: NOW)
    path = default_path(tmp_path, "some_rule", "../../etc", NOW)
    assert path.name == "20260131T030000Z-some_rule-_etc.txt"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.fixture
def shown() -> list[str]:
    return []


def test_a_command_gets_no_input_and_its_errors_are_shown(shown: list[str], tmp_path: Path) -> None:
    script = _script(tmp_path, "cat; echo out; echo err >&2; exit 3")
    result = run([script], shown.append)
    assert (result.exit_code, sorted(shown), result.error) == (3, ["err", "out"], None)


def test_a_command_that_does_not_end_is_ended_with_its_children(
    shown: list[str], tmp_path: Path
) -> None:
    script = _script(tmp_path, "sleep 600 & echo begun; wait")
    result = run([script], shown.append, seconds=0.5)
    assert result.error == "ended after 0.5 s"
    assert shown == ["begun"]


def test_a_command_that_cannot_start_says_why(shown: list[str], tmp_path: Path) -> None:
    result = run([str(tmp_path / "absent")], shown.append)
    assert (result.exit_code, result.error) == (
        None,
        "cannot be started: No such file or directory",
    )


def test_an_interruption_ends_the_command_too(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    script = _script(tmp_path, f"trap 'touch {ended}; exit 1' INT; echo begun; sleep 600 & wait")
    with pytest.raises(KeyboardInterrupt):
        run([script], _raise(KeyboardInterrupt()))
    assert ended.exists()


def _raise(error: BaseException) -> Callable[[str], None]:
    def show(_line: str) -> None:
        raise error

    return show


def _script(folder: Path, text: str) -> str:
    path = folder / "script"
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return str(path)
