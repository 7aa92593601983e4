"""A fault about losses in two steps, so that a watcher can look just before the blow."""

from __future__ import annotations

from dataclasses import dataclass

from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.scene import Strike
from service.sandbox.faults.stage import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Everything is written and acknowledged, and nothing has happened yet."""

    stage: Stage
    strike_once: Strike

    @property
    def topic(self) -> str:
        """The topic that is to suffer, with all its partitions."""
        return self.stage.where.topic

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups that have read to its end."""
        return tuple(self.stage.groups)

    def strike(self) -> LossTruth:
        """Let it happen, once; return the verified truth.

        Raises:
            SandboxError: it came otherwise, and so there is no truth to tell.
        """
        return self.strike_once()
