"""Every fault by its name, and how one is made and undone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from rules.errors import SandboxError
from service.sandbox.cluster import Sandbox
from service.sandbox.faults.fenced import make_second_instance, make_timeout_fence
from service.sandbox.faults.hanging import make_hanging
from service.sandbox.faults.open_transaction import make_open, make_overdue
from service.sandbox.faults.stage import FaultOptions, Stage
from service.sandbox.faults.stuck_marker import make_stuck_marker
from service.sandbox.faults.truth import Truth
from service.sandbox.workloads.raw_cluster import RawCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault that can be made."""

    name: str
    summary: str
    make: Callable[[Stage], Truth]
    timeout: timedelta  # of its transaction, unless the caller gives another
    needs_hold: bool = False  # whether somebody has to undo it, so that the sandbox stays usable


@dataclass(slots=True, kw_only=True)
class Made:
    """A fault that is there: to be undone, or left as it is."""

    truth: Truth
    stage: Stage

    def undo(self) -> None:
        """Take back every step, the last one first, as far as that is possible."""
        with self.stage.cluster:
            self.stage.undo.close()

    def leave(self) -> None:
        """Keep the fault and give back the connections."""
        self.stage.cluster.close()


_ALL: Final = (
    Fault(
        name="open-transaction",
        summary="a transaction stays open, within its timeout; a group waits behind it",
        make=make_open,
        timeout=timedelta(seconds=300),  # last_stable_offset_stuck waits two minutes
    ),
    Fault(
        name="overdue-transaction",
        summary="its timeout is over, and the coordinator cannot abort it yet",
        make=make_overdue,
        timeout=timedelta(seconds=3),
        needs_hold=True,
    ),
    Fault(
        name="hanging-transaction",
        summary="open on a partition, and no coordinator will ever end it",
        make=make_hanging,
        timeout=timedelta(seconds=60),
    ),
    Fault(
        name="second-instance",
        summary="a second producer takes the transactional id; the first one is fenced",
        make=make_second_instance,
        timeout=timedelta(seconds=60),
    ),
    Fault(
        name="timeout-fence",
        summary="a living owner exceeds its timeout; its next call is refused",
        make=make_timeout_fence,
        timeout=timedelta(seconds=1),
    ),
    Fault(
        name="stuck-marker",
        summary="committed, and a partition does not take the marker (a replica is paused)",
        make=make_stuck_marker,
        timeout=timedelta(seconds=60),
        needs_hold=True,
    ),
)
FAULTS: Final[Mapping[str, Fault]] = MappingProxyType({fault.name: fault for fault in _ALL})


def begin_fault(name: str, sandbox: Sandbox, options: FaultOptions) -> Made:
    """Make a fault completely, or undo what was done of it and raise."""
    fault = FAULTS.get(name)
    if fault is None:
        raise SandboxError(f"there is no fault {name!r}; there are: {', '.join(FAULTS)}")
    if options.unlisted and fault.make is not make_hanging:
        raise SandboxError("only a hanging transaction can be unlisted")
    with contextlib.ExitStack() as undo:
        stage = Stage(
            sandbox=sandbox,
            options=options,
            cluster=undo.enter_context(RawCluster(sandbox)),
            fault=name,
            timeout=options.timeout or fault.timeout,
        )
        undo.callback(stage.undo.close)
        truth = fault.make(stage)
        undo.pop_all()
    return Made(truth=truth, stage=stage)


@contextlib.contextmanager
def make_fault(name: str, sandbox: Sandbox, **options: Any) -> Iterator[Truth]:
    """Make a fault for the length of a block; `options` are those of FaultOptions."""
    made = begin_fault(name, sandbox, FaultOptions(**options))
    try:
        yield made.truth
    finally:
        made.undo()
