"""The act of lost records: found by Tidemark, compared in the old leader's copy, and produced again from it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rules.errors import SandboxError
from rules.facts.identity import TopicPartition
from rules.loss.evidence_fields import LossEvidence
from service.runtime.children import child_environment, module_command
from service.sandbox.cluster.layout import node_layout
from service.sandbox.demo.act import Act, Observation, Step, is_alone, whole_again
from service.sandbox.demo.api import Api
from service.sandbox.demo.stage import INVOICES, LOST, Stage
from service.sandbox.workloads.log_reading import read_records
from service.sandbox.workloads.producing_again import content, produce_again
from service.terminal.exit_codes import ExitCode

RULE: Final = "committed_records_lost"
CHECKPOINT: Final = "replication-offset-checkpoint"
PLACE: Final = TopicPartition(INVOICES, 0)
DIFF_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class CopyFiles:
    """Where the old leader's copy is, and what was written of it."""

    folder: Path

    @property
    def partition(self) -> Path:
        """The folder of the partition; the checkpoint lies beside it."""
        return self.folder / str(PLACE)

    def records(self, number: int) -> Path:
        """Return the file of a comparison."""
        return self.folder / f"lost-{number}.jsonl"


def _files(stage: Stage) -> CopyFiles:
    return CopyFiles(stage.folder / "copied")


def compare_copy(stage: Stage) -> None:
    """Copy the folder of the broker that is down, and compare the copy with the new leader."""
    if stage.truth is None:
        raise SandboxError("nothing was lost")
    files = _files(stage)
    data = node_layout(stage.sandbox.directory, stage.truth.partitions[0].before.leader).data
    shutil.copytree(data / str(PLACE), files.partition)
    shutil.copy(data / CHECKPOINT, files.folder / CHECKPOINT)
    _diff(stage, 1)


def produce_lost(stage: Stage) -> None:
    """Produce what was written of the copy, and compare once more."""
    produce_again(_servers(stage), _files(stage).records(1))
    _diff(stage, 2)


def _servers(stage: Stage) -> str:
    """Return the brokers that run: one that is down delays a client."""
    sandbox = stage.sandbox
    down = None if stage.truth is None else stage.truth.partitions[0].before.leader
    return ",".join(
        sandbox.broker_address(broker.id) for broker in sandbox.state.brokers if broker.id != down
    )


def _diff(stage: Stage, number: int) -> None:
    """Run `tidemark log diff` with the high watermark that Tidemark has found."""
    files = _files(stage)
    with Api(stage.address) as api:
        status = api.observe(())
    finding = None if status is None else status.finding(RULE, INVOICES)
    if finding is None:
        raise SandboxError(f"Tidemark does not report {RULE} any more")
    command = module_command(
        "service", "log", "diff", str(files.partition), "--bootstrap-servers", _servers(stage),
        "--high-watermark", str(finding["evidence"]["certain_to"]), "--records", str(files.records(number)), "-o", "json",
    )  # fmt: skip
    done = subprocess.run(
        command,
        env=child_environment(os.environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=DIFF_SECONDS,
    )
    if done.returncode != ExitCode.LOST:
        raise SandboxError(f"tidemark log diff: {done.stdout}{done.stderr}")
    [stage.compared] = json.loads(done.stdout)["partitions"]


def _is_truly_lost(observed: Observation) -> str | None:
    """Compare the reported loss with what reading the log before and after has shown."""
    evidence = observed.evidence(RULE, INVOICES, LossEvidence)
    if evidence is None or observed.stage.truth is None:
        return None
    [truth] = observed.stage.truth.partitions
    start, end = evidence["certain_from"], evidence["certain_to"]
    if (start, end) != (truth.lost_from, truth.committed_to) or end is None:
        return None
    return (
        f"critical {RULE} on {INVOICES}: {evidence['certain_offsets']} committed offsets, "
        f"{start} to {end - 1}, are gone for certain; what was appended "
        f"after {evidence['unknown_since']} is unknown\n        advice: {evidence['advice']}\n"
        "        read from the log before and after: exactly these are gone"
    )


def _has_exactly_these(observed: Observation) -> str | None:
    """Compare what was written of the copy with the truth."""
    lines, compared, truth = (
        _lines(observed.stage, 1),
        observed.stage.compared,
        observed.stage.truth,
    )
    if compared is None or truth is None or truth.partitions[0].lost_from is None:
        return None
    [partition] = truth.partitions
    lost = range(partition.lost_from or 0, partition.committed_to or 0)
    if [line["offset"] for line in lines] != list(lost):
        return None
    return (
        f"tidemark log diff: the logs part at {compared['divergence_offset']}; {len(lines)} records of the copy, "
        f"{lost.start} to {lost.stop - 1}, are committed and lost: written to {_files(observed.stage).records(1).name}"
    )


def _is_read_back(observed: Observation) -> str | None:
    """Compare what can be read now, behind the place where the logs part, with what was lost."""
    stage = observed.stage
    if stage.compared is None:
        return None
    records = read_records(_servers(stage), PLACE)
    again = {
        at: value for at, value in records.items() if at >= stage.compared["divergence_offset"]
    }
    values = [content(line, "value") for line in _lines(stage, 1)]
    if list(again.values()) != values or _lines(stage, 2):
        return None
    return (
        f"{len(values)} records were read back at the offsets {min(again)} to {max(again)}, byte for byte those that "
        f"were lost; log diff finds all {stage.compared['records']['possibly_again']} in the new log now, "
        "and would write none a second time"
    )


def _lines(stage: Stage, number: int) -> list[dict[str, Any]]:
    text = _files(stage).records(number).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


LOSS: Final = Act(
    title="Committed records are lost",
    steps=[
        Step(
            did=f"{LOST} records went to {INVOICES}, acknowledged while one broker alone was in sync",
            do=Stage.prepare_loss,
            seen=is_alone(INVOICES, LOST),
            limit_seconds=45,
        ),
        Step(
            did="that broker was killed, and a replica leads that has none of them",
            do=Stage.lose_records,
            seen=_is_truly_lost,
            limit_seconds=45,
        ),
        Step(
            did="the folder of the broker that is down was copied, and compared with the new leader",
            do=compare_copy,
            seen=_has_exactly_these,
        ),
        Step(
            did="the lost records were produced again from that copy, in one transaction",
            do=produce_lost,
            seen=_is_read_back,
        ),
        Step(
            did="the old leader came back, and truncated its log",
            do=Stage.bring_back,
            seen=whole_again,
            limit_seconds=60,
        ),
    ],
)
