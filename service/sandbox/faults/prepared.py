"""A fault about losses or sequences in two steps, so that a monitor can observe just before the fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.sequence_truth import SequenceTruth

TruthT = TypeVar("TruthT", LossTruth, SequenceTruth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Generic[TruthT]):
    """Everything is written and acknowledged, and nothing has happened yet."""

    run: FaultRun
    inject_once: Callable[[], TruthT]

    @property
    def topic(self) -> str:
        """The topic that is to suffer, with all its partitions."""
        return self.run.where.topic

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups that have read to its end."""
        return tuple(self.run.groups)

    def inject(self) -> TruthT:
        """Let it happen, once; return the verified truth.

        Raises:
            SandboxError: it came otherwise, and so there is no truth to return.
        """
        return self.inject_once()
