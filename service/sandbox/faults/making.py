"""How a fault is made, in one step or in two, and undone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import Any, Generic, Literal, TypeVar, overload

from rules.errors import SandboxError
from rules.facts.broker_log import SequenceForm
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults.fault_run import Client, FaultOptions, FaultRun
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.needed_release import require_release
from service.sandbox.faults.registry import DEFAULT_TIMEOUT, FAULTS, AnyInjection, AnyTruth, Fault
from service.sandbox.faults.sequence_truth import SequenceTruth
from service.sandbox.faults.truth import Truth
from service.sandbox.workloads.raw_cluster import RawCluster

T = TypeVar("T")
TruthT = TypeVar("TruthT", LossTruth, SequenceTruth)

LossName = Literal[
    "committed-loss",
    "unreplicated-loss",
    "unclean-without-loss",
    "double-failover",
    "topic-recreated",
    "records-deleted",
    "clean-failover-under-load",
]
SequenceName = Literal[
    "sequence-reordering",
    "sequence-loss",
    "sequence-two-producers",
    "sequence-duplicate",
    "sequence-stale-retry",
    "sequence-restart",
    "sequence-state-expired",
    "sequence-delivery-timeout",
    "sequence-in-transaction",
]


@dataclass(slots=True, kw_only=True)
class ActiveFault:
    """A fault that is in effect: to be undone, or left as it is."""

    truth: AnyTruth
    run: FaultRun

    def undo(self) -> None:
        """Take back every step, the last one first, as far as that is possible."""
        self.run.take_back()

    def leave(self) -> None:
        """Keep the fault and give back the connections."""
        self.run.cluster.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Generic[TruthT]):
    """A fault in two steps: all is written and acknowledged, and nothing has happened yet."""

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


def begin_fault(
    name: str,
    sandbox: Sandbox,
    options: FaultOptions,
    wait: Callable[[str], None] | None = None,
) -> ActiveFault:
    """Make a fault completely, or undo what was done of it and raise.

    `wait` is called with the topic when all is written and nothing has happened yet: time for a monitor
    to observe it. Faults that are made in one step take none.
    """
    if wait is None:
        run, truth = _begin(name, sandbox, options, lambda fault: fault.make)
        return ActiveFault(truth=truth, run=run)
    run, inject = _begin(name, sandbox, options, _prepare_of)
    try:
        wait(run.where.topic)
        return ActiveFault(truth=inject(), run=run)
    except BaseException:
        run.take_back()
        raise


@overload  # a literal name tells mypy which truth it is; the runtime does not care
def make_fault(
    name: LossName, sandbox: Sandbox, **options: Any
) -> AbstractContextManager[LossTruth]: ...
@overload
def make_fault(
    name: SequenceName, sandbox: Sandbox, **options: Any
) -> AbstractContextManager[SequenceTruth]: ...
@overload
def make_fault(name: str, sandbox: Sandbox, **options: Any) -> AbstractContextManager[Truth]: ...
@contextlib.contextmanager
def make_fault(name: str, sandbox: Sandbox, **options: Any) -> Iterator[Any]:
    """Make a fault for the length of a block; `options` are those of FaultOptions."""
    fault = begin_fault(name, sandbox, FaultOptions(**options))
    try:
        yield fault.truth
    finally:
        fault.undo()


def prepare_loss(
    name: LossName, sandbox: Sandbox, **options: Any
) -> AbstractContextManager[Prepared[LossTruth]]:
    """Prepare a fault about losses for the length of a block, which decides when to inject it."""
    return _prepared(name, sandbox, FaultOptions(**options))


def prepare_sequence(
    name: SequenceName, sandbox: Sandbox, **options: Any
) -> AbstractContextManager[Prepared[SequenceTruth]]:
    """Prepare a fault about sequences for the length of a block, which decides when to inject it."""
    return _prepared(name, sandbox, FaultOptions(**options))


@contextlib.contextmanager
def _prepared(name: str, sandbox: Sandbox, options: FaultOptions) -> Iterator[Any]:
    run, inject = _begin(name, sandbox, options, _prepare_of)
    try:
        yield Prepared(run=run, inject_once=inject)
    finally:
        run.take_back()


def _begin(
    name: str,
    sandbox: Sandbox,
    options: FaultOptions,
    step_of: Callable[[Fault], Callable[[FaultRun], T]],
) -> tuple[FaultRun, T]:
    """Take the first step of a fault; undo what was done of it when that fails."""
    fault = FAULTS.get(name)
    if fault is None:
        raise SandboxError(f"there is no fault {name!r}; there are: {', '.join(FAULTS)}")
    _require_taken(fault, options)
    if {"client", "form"} & fault.takes:
        _require_fitting(fault, options)
    step = step_of(fault)
    require_release(name, options, sandbox.state.release)
    with contextlib.ExitStack() as undo:
        run = FaultRun(
            sandbox=sandbox,
            options=options,
            cluster=undo.enter_context(RawCluster(sandbox)),
            fault=name,
            timeout=options.timeout or fault.timeout or DEFAULT_TIMEOUT,
        )
        undo.callback(run.undo.close)
        result = step(run)
        undo.pop_all()
    return run, result


def _prepare_of(fault: Fault) -> Callable[[FaultRun], AnyInjection]:
    if fault.prepare is None:
        raise SandboxError(f"{fault.name} is made in one step: there is nothing to wait for")
    return fault.prepare


def _require_taken(fault: Fault, options: FaultOptions) -> None:
    """Reject options that the fault would ignore, and counts that leave nothing to do."""
    plain = FaultOptions(topic=options.topic)
    for option in fields(options):
        name = option.name
        if name not in fault.takes and getattr(options, name) != getattr(plain, name):
            raise SandboxError(f"{fault.name} does not take --{name.replace('_', '-')}")
    if min(options.partitions, options.batch) < 1 or options.records < fault.least_records:
        raise SandboxError(
            f"{fault.name} needs at least {fault.least_records} records, one partition, "
            "and one record in a batch"
        )


def _require_fitting(fault: Fault, options: FaultOptions) -> None:
    """Reject a form that the fault cannot lead to, or that the chosen client cannot make."""
    is_raw, form = options.client is Client.RAW, options.form.replace("_", "-")
    if options.form not in fault.forms:
        raise SandboxError(f"{fault.name} never leads to --form {form}")
    if not is_raw and options.form is not SequenceForm.OUT_OF_ORDER:
        raise SandboxError(f"{fault.name} makes --form {form} with --client raw alone")
    if is_raw and options.transactional:
        raise SandboxError(f"{fault.name} needs --client librdkafka or java to be --transactional")
