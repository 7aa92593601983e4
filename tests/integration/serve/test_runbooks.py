"""The runbook of a rule, followed on real brokers: a fault, its alert, what is read, and how it ends.

One runbook is followed in `make test`, at a terminal whose person says yes to the mitigation; all others are variations:
`make runbooks`.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

import pytest

from service.cli.runbook.library import OURS, read, rule_ids
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import (
    FAULTS,
    LossName,
    SequenceName,
    make_fault,
    prepare_loss,
    prepare_sequence,
)
from tests.integration.sandbox_logs import log_files_of
from tests.integration.serve.conftest import Serve
from tests.integration.serve.served import ROOT, SEE_SECONDS, Document, Served, plain_environment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

FIRE_SECONDS: Final = 300.0  # some rules wait for minutes
PROMPT: Final = b"[y/N]: "
VARIATION: Final = pytest.mark.variation


@dataclass(frozen=True, kw_only=True)
class Case:
    """A rule, and the fault that makes it fire."""

    rule: str
    options: Mapping[str, Any] = field(default_factory=dict)
    answer: str = "n"  # to the mitigations that can be run
    shows: str  # in the output of a command that reads

    @property
    def fault(self) -> str:
        return read(OURS / f"{self.rule}.md", rule_ids()).facts["fault"]


STEADY: Final = (
    Case(rule="transaction_hanging", answer="y", shows=r"HANGING +{topic}-0"),
    Case(rule="read_committed_consumers_blocked", shows=r"HANGING +{topic}-0"),
    Case(rule="last_stable_offset_stuck", shows=r"open .*{topic}"),
    Case(rule="transaction_overdue", shows=r"{topic}"),
    Case(rule="producer_fenced", shows=r"producer"),
    Case(rule="sequence_gap_reordering", shows=r"transaction +aborted, transactional id"),
    Case(rule="duplicates_possible", shows=r"stale_retry"),
    Case(rule="producer_sequence_bug", shows=r"sequence_restart"),
)
BREAKING: Final = (
    Case(rule="transaction_marker_stuck", shows=r"prepare_commit"),
    Case(rule="partition_under_min_isr", shows=r"Topic: {topic} .*Partition: 0"),
    Case(rule="committed_records_lost", shows=r"(?i)keep broker \d+ down"),
    Case(rule="unclean_leader_election", shows=r"(?i)committed_lost"),
    Case(rule="committed_beyond_log_end", options={"readers": True}, shows=r"(?i)beyond"),
    Case(rule="unreplicated_records_lost", shows=r"(?i)acks=1"),
    Case(rule="sequence_gap_loss", shows=r"(?i)loss"),
)
FIRST: Final = "transaction_hanging"


def parameters(cases: tuple[Case, ...]) -> list[Any]:
    return [
        pytest.param(case, id=case.rule, marks=() if case.rule == FIRST else VARIATION)
        for case in cases
    ]


def test_every_runbook_with_a_fault_is_followed() -> None:
    made = {rule for fault in FAULTS.values() for rule in fault.rules}
    assert {case.rule for case in (*STEADY, *BREAKING)} == made


@pytest.mark.parametrize("case", parameters(STEADY))
def test_the_runbook_is_followed_to_its_end(
    case: Case, cluster: Sandbox, serve: Serve, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    follow(case, cluster, serve, new_name("runbook"), tmp_path)


@pytest.mark.parametrize("case", parameters(BREAKING))
def test_the_runbook_is_followed_while_brokers_are_down(
    case: Case, faults: Sandbox, serve: Serve, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    follow(case, faults, serve, new_name("runbook"), tmp_path)


def follow(case: Case, sandbox: Sandbox, serve: Serve, topic: str, folder: Path) -> None:
    """Inject the fault, wait for the alert, follow its runbook, undo what is left, see it end."""
    logs = {"BROKER_LOGS__FILES": json.dumps(log_files_of(sandbox))}
    groups = f"({case.fault}|{topic}).*"
    served = serve(topics=f"{topic}.*", groups=groups, settings=logs)
    served.wait_rounds(2)
    with injected(case, sandbox, served, topic) as truth:
        assert {truth.rule, *truth.also} <= set(FAULTS[case.fault].rules)
        alert = await_alert(served, case.rule, topic)
        transcript = folder / "transcript.txt"
        code, screen = run_at_terminal(case, sandbox, served, alert, transcript)
        assert code == 0, screen
        assert_followed(case, topic, transcript.read_text(encoding="utf-8"), screen)
        if case.answer == "y":
            await_end(served, alert)  # the mitigation alone has ended it
    if alert["kind"] == "event":
        tidemark(served, "alerts", "close", alert["fingerprint"], "--why", "the runbook's test")
    await_end(served, alert)


@contextlib.contextmanager
def injected(case: Case, sandbox: Sandbox, served: Served, topic: str) -> Iterator[Any]:
    """Inject the fault for the length of a block, where it has two steps after an observation."""
    given: dict[str, Any] = {"topic": topic, **case.options}
    if FAULTS[case.fault].prepare is None:
        with make_fault(case.fault, sandbox, **given) as truth:
            yield truth
        return
    if case.fault.startswith("sequence-"):
        prepared = prepare_sequence(cast("SequenceName", case.fault), sandbox, **given)
    else:
        prepared = cast("Any", prepare_loss(cast("LossName", case.fault), sandbox, **given))
    with prepared as step:
        path = f"/api/v1/partitions?topic={quote(topic)}"
        wait_until(lambda: bool(served.document(path)["items"]), timeout_seconds=SEE_SECONDS)
        served.wait_rounds(3)
        yield step.inject()


def alerts_of(served: Served, rule: str) -> list[Document]:
    items: list[Document] = served.document(f"/api/v1/alerts?state=all&rule={rule}")["items"]
    return items


def await_alert(served: Served, rule: str, topic: str) -> Document:
    """Wait until an alert of the rule fires that is about the topic, or is the only one."""
    found: list[Document] = []

    def fires() -> bool:
        found[:] = [
            alert
            for alert in alerts_of(served, rule)
            if alert["state"] == "firing" and alert["labels"].get("topic", topic) == topic
        ]
        return bool(found)

    assert wait_until(fires, timeout_seconds=FIRE_SECONDS), served.reported()
    return found[0]


def await_end(served: Served, alert: Document) -> None:
    def has_ended() -> bool:
        states = {row["fingerprint"]: row["state"] for row in alerts_of(served, alert["rule"])}
        return str(states[alert["fingerprint"]]) == "resolved"

    assert wait_until(has_ended, timeout_seconds=SEE_SECONDS), served.reported()


def environment(sandbox: Sandbox, served: Served) -> dict[str, str]:
    return plain_environment() | {
        "TIDEMARK_SERVER": served.address,
        "TIDEMARK_SANDBOX__DIR": str(sandbox.directory),
    }


def tidemark(served: Served, *words: str) -> None:
    command = [sys.executable, "-m", "service", *words, "--server", served.address]
    subprocess.run(command, cwd=ROOT, env=plain_environment(), check=True, timeout=120)


def run_at_terminal(
    case: Case, sandbox: Sandbox, served: Served, alert: Document, transcript: Path
) -> tuple[int, str]:
    """Run the runbook at a terminal and answer its questions; return the exit code and the screen."""
    words = (alert["fingerprint"][:8], "--bootstrap-servers", sandbox.bootstrap_servers)
    command = [sys.executable, "-m", "service", "runbook", "run", *words]
    command += ["--kafka-tools", "sandbox", "--transcript", str(transcript)]
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            command, cwd=ROOT, env=environment(sandbox, served) | {"NO_COLOR": "1"},
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        ) as process:  # fmt: skip
            os.close(theirs)
            screen = answer_questions(ours, f"{case.answer}\n".encode())
            return process.wait(timeout=60), screen
    finally:
        os.close(ours)


def answer_questions(terminal: int, answer: bytes) -> str:
    """Answer every question at a terminal until its program ends; return what it showed."""
    shown, answered = b"", 0
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # Linux: the other side is closed
            part = b""
        if not part:
            return shown.decode()
        shown += part
        if shown.count(PROMPT) > answered:
            answered += 1
            os.write(terminal, answer)


def assert_followed(case: Case, topic: str, transcript: str, screen: str) -> None:
    """Assert that all that reads was run, and what changes only after a yes; all of it noted."""
    blocks = list(read(OURS / f"{case.rule}.md", rule_ids()).sections["Diagnosis"])
    assert re.search(case.shows.replace("{topic}", re.escape(topic)), transcript), transcript
    assert "nobody is at the terminal" not in transcript
    assert transcript.count(" run ") >= len(blocks)
    assert re.search(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ end$", transcript, re.MULTILINE), transcript
    assert "transcript: " in screen
    runs_of_changes = re.findall(r"Z run \S.*kafka-\S+ .*(?:abort|--alter|--execute)", transcript)
    assert bool(runs_of_changes) == (case.answer == "y")
    if case.answer == "y":
        confirmed = transcript.index("confirm: run tidemark sandbox tool kafka-transactions.sh")
        assert transcript.index("    yes", confirmed) < transcript.index(runs_of_changes[0])
        verification = transcript[transcript.index("section Verification") :]
        assert f"HANGING  {topic}-0" not in verification, transcript
