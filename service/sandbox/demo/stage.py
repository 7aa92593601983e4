"""Everything the story plays on: a cluster, Tidemark itself as a process, topics and loads."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rules.errors import SandboxError
from service.runtime import clock
from service.runtime.children import module_command
from service.runtime.data_directory import let_pass
from service.runtime.events import Event
from service.sandbox.cluster import processes
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.processes import Liveness
from service.sandbox.cluster.state import ProcessId
from service.sandbox.cluster.tools import run_quietly
from service.sandbox.demo.api import Api, ship
from service.sandbox.demo.pager import Pager
from service.sandbox.demo.simulated_runs import SimulatedRuns
from service.sandbox.faults import (
    Client,
    FaultOptions,
    LossTruth,
    Prepared,
    SequenceTruth,
    begin_fault,
    make_fault,
    prepare_loss,
    prepare_sequence,
)
from service.sandbox.workloads.consumer import GroupConsumer
from service.sandbox.workloads.producer import IdempotentProducer
from service.sandbox.workloads.standard import WorkloadPlan, standard_workload
from service.sandbox.workloads.transactions import OpenTransaction

CLUSTER: Final = "demo"
ROUND_SECONDS: Final = 2.0
START_SECONDS: Final = 120.0  # a busy machine; an idle one needs less than ten
DRAIN_SECONDS: Final = 30.0
MAX_ERRORS_SHOWN: Final = 3  # lines of Tidemark's log, where a step is not seen

ORDERS: Final = WorkloadPlan(
    topic="orders", rate=100, abort_every=5, slow_rate=None, commit_seconds=1.0
)
READ: Final = ORDERS.output_topic
FAST_GROUP: Final = "orders-fast"
SLOW_GROUP: Final = "orders-slow"
SLOW_RATE: Final = 10.0  # records per second
PAYMENTS: Final = "payments"
BILLING: Final = "billing"  # a group that reads payments
AUDIT: Final = "audit"
INVOICES: Final = "invoices"
PARCELS: Final = "parcels"
REFUNDS: Final = "refunds"
SHIPMENTS: Final = "shipments"
LOST: Final = 24  # records
FROZEN: Final = (2, 3)
KILLED: Final = 3


@dataclass(slots=True)
class Stage:
    """What steps act on; each load is started by a step and ended with the stage, or before."""

    folder: Path
    sandbox: Sandbox
    pager: Pager
    baseline_runs: SimulatedRuns
    address: str = ""  # of Tidemark's API
    tidemark: ProcessId | None = None
    is_left_running: bool = False  # it goes on after the story
    temporary_groups: list[str] = field(default_factory=list)  # that only a step needs
    prepared: Prepared[LossTruth] | None = None  # records that are to be lost
    truth: LossTruth | None = None  # what was lost, verified by reading the log
    compared: dict[str, Any] | None = None  # what `log diff` said of its partition last
    prepared_sequence: Prepared[SequenceTruth] | None = None
    sequence_truth: SequenceTruth | None = None  # likewise
    loss: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    loads: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    open_transaction: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def servers(self) -> str:
        """Return the brokers' addresses."""
        return self.sandbox.bootstrap_servers

    @property
    def admin(self) -> SandboxAdmin:
        """Return the cluster's admin client."""
        return SandboxAdmin(self.servers)

    def start_orders(self) -> None:
        """Start producers, a transactional pipeline and a fast group."""
        self.loads.enter_context(standard_workload(self.sandbox, ORDERS))

    def start_slow_group(self) -> None:
        """Start a group that reads less than what is written."""
        slow = GroupConsumer(self.servers, topic=READ, group=SLOW_GROUP, rate=SLOW_RATE)
        self.loads.enter_context(slow)

    def hold_transaction(self) -> None:
        """Begin a transaction on payments and leave it open, while others write behind it."""
        self.admin.create_topic(PAYMENTS)
        producer = IdempotentProducer(self.servers, topic=PAYMENTS, rate=20)
        billing = GroupConsumer(self.servers, topic=PAYMENTS, group=BILLING)
        self.loads.enter_context(producer)
        self.loads.enter_context(billing)
        self.temporary_groups.append(BILLING)
        clock.wait_until(lambda: billing.counts.consumed > 20, timeout_seconds=START_SECONDS)
        held = OpenTransaction(self.servers, topic=PAYMENTS, records=5)
        self.open_transaction.enter_context(held)

    def end_transaction(self) -> None:
        """Abort it."""
        self.open_transaction.close()

    def hang_transaction(self) -> None:
        """Open a transaction on payments that its coordinator does not know of."""
        fault = begin_fault("hanging-transaction", self.sandbox, FaultOptions(topic=PAYMENTS))
        self.open_transaction.callback(fault.undo)

    def run_repair(self) -> None:
        """Run the command that Tidemark printed, with Kafka's own tool."""
        with Api(self.address) as api:
            command = api.repair_command(PAYMENTS)
        if command is None:
            raise SandboxError("Tidemark prints no command any more")
        tool, *arguments = shlex.split(command)
        run_quietly(self.sandbox, tool, arguments)
        self.open_transaction.close()  # its producer, and the group that the fault had made

    def prepare_loss(self) -> None:
        """Let one broker alone hold acknowledged records of a topic."""
        self.prepared = self.loss.enter_context(
            prepare_loss("committed-loss", self.sandbox, topic=INVOICES, records=LOST)
        )

    def lose_records(self) -> None:
        """Kill that broker and let a replica lead that knows nothing of them."""
        if self.prepared is None:
            raise SandboxError("nothing is prepared to be lost")
        self.truth = self.prepared.inject()

    def reorder_batches(self) -> None:
        """Let a producer's batches arrive in another order; its client sends them again."""
        fault = make_fault(
            "sequence-reordering", self.sandbox, topic=PARCELS, client=Client.LIBRDKAFKA
        )
        self.loss.enter_context(fault)

    def reject_in_transaction(self) -> None:
        """Let a batch of a transaction be rejected; its application aborts it, as it has to."""
        fault = make_fault(
            "sequence-in-transaction", self.sandbox, topic=SHIPMENTS, client=Client.LIBRDKAFKA
        )
        self.sequence_truth = self.loss.enter_context(fault)

    def ship_application_log(self) -> None:
        """Send Tidemark what that application logged, as a shipper of logs would."""
        truth = self.sequence_truth
        if truth is None or not truth.application_log:
            raise SandboxError("the application logged nothing")
        ship(self.address, SHIPMENTS, truth.application_log)

    def prepare_sequence_loss(self) -> None:
        """Let one broker alone hold acknowledged records of a producer."""
        self.loss.close()  # that of the step before
        prepared = prepare_sequence("sequence-loss", self.sandbox, topic=REFUNDS, records=LOST)
        self.prepared_sequence = self.loss.enter_context(prepared)

    def lose_sequences(self) -> None:
        """Lose them with that broker, and let the producer go on."""
        if self.prepared_sequence is None:
            raise SandboxError("nothing is prepared to be lost")
        self.sequence_truth = self.prepared_sequence.inject()

    def bring_back(self) -> None:
        """Start the killed broker: it truncates its log as it follows the new leader."""
        self.loss.close()

    def freeze_followers(self) -> None:
        """Freeze the two followers of a topic that broker 1 leads."""
        self.admin.create_topic(AUDIT, assignment=[[1, *FROZEN]])
        producer = IdempotentProducer(self.servers, topic=AUDIT, rate=20)
        self.loads.enter_context(producer)
        clock.wait_until(lambda: producer.counts.acknowledged > 0, timeout_seconds=START_SECONDS)
        for broker in FROZEN:
            self.sandbox.pause(broker)

    def thaw_followers(self) -> None:
        """Let them go on."""
        for broker in FROZEN:
            self.sandbox.resume(broker)

    def kill_broker(self) -> None:
        """Kill a broker as a power cut would."""
        self.sandbox.kill(KILLED)

    def start_broker(self) -> None:
        """Start it again with its old data."""
        self.sandbox.start(KILLED)

    def close_reordering(self) -> None:
        """Close, by hand, the event of batches that had come in another order."""
        with Api(self.address) as api:
            api.close_event("sequence_gap_reordering", PARCELS, "proven harmless: it healed")

    def simulate_weeks(self) -> None:
        """Simulate weeks, as if the cluster had been observed for so long."""
        self.baseline_runs.simulate(CLUSTER)

    def start_runs(self) -> None:
        """Let baseline runs learn from them, and publish the last one where Tidemark reads."""
        self.baseline_runs.start(self._settings_file, _without_own_settings())

    def start_backtest(self) -> None:
        """Let a backtest replay the last simulated days."""
        end_child(self.baseline_runs)
        self.baseline_runs.start_backtest(self._settings_file, _without_own_settings())

    def start_tidemark(self) -> None:
        """Start `tidemark serve` in a process of its own, and wait until it listens."""
        log = self._log
        self.tidemark = processes.spawn(self._command(), output=log)
        if not clock.wait_until(lambda: bool(_address_in(log)), timeout_seconds=START_SECONDS):
            last = processes.last_words(log.read_text(encoding="utf-8", errors="replace"))
            raise SandboxError(f"tidemark serve did not start: {last}")
        self.address = _address_in(log) or ""

    def errors(self) -> list[str]:
        """Return the last errors and warnings in Tidemark's own log."""
        return [line for line in self._log_lines() if not _is_ordinary(line)][-MAX_ERRORS_SHOWN:]

    def last_words(self) -> list[str]:
        """Return the last lines of Tidemark's own log."""
        return self._log_lines()[-MAX_ERRORS_SHOWN:]

    def _log_lines(self) -> list[str]:
        with contextlib.suppress(OSError):
            return self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return []

    def stop_tidemark(self) -> bool:
        """End it in order; False if it had to be killed."""
        if self.tidemark is None:
            return True
        process, self.tidemark = self.tidemark, None
        return end_in_order(process)

    @property
    def _log(self) -> Path:
        return self.folder / "tidemark.log"

    @property
    def _settings_file(self) -> Path:
        return self.folder / "tidemark.toml"

    def _command(self) -> list[str]:
        settings = self._settings_file
        content = _settings(self.servers, self.folder / "tidemark") + self.pager.settings()
        content += _log_files(self.sandbox)
        settings.write_text(content, encoding="utf-8")
        serve = module_command("service", "serve", "--config", str(settings))
        return ["/usr/bin/env", *_without_own_settings(), *serve]


def end_in_order(process: ProcessId) -> bool:
    """End a process with SIGTERM; kill it, and return False, if it does not end in time."""
    processes.terminate(process)
    ended = clock.wait_until(
        lambda: processes.liveness(process) is Liveness.DEAD, timeout_seconds=DRAIN_SECONDS
    )
    if not ended:
        processes.end([process])
    return ended


def end_child(child: Pager | SimulatedRuns) -> None:
    """End the process of a receiver, or of baseline runs, where it still runs."""
    process, child.process = child.process, None
    if process is not None:
        end_in_order(process)


@contextlib.contextmanager
def open_stage(folder: Path, say: Callable[[str], None]) -> Iterator[Stage]:
    """Start cluster and Tidemark below a folder of ours; end them, and all loads, afterwards."""
    let_pass(folder)
    sandbox = Sandbox(folder / "kafka", progress=say)
    stage = Stage(folder, sandbox, Pager(folder), SimulatedRuns(folder))
    try:
        sandbox.up()
        stage.start_orders()
        stage.pager.start()
        stage.start_tidemark()
        yield stage
    finally:
        if not stage.is_left_running:
            close_stage(stage, say)


def close_stage(stage: Stage, say: Callable[[str], None]) -> None:
    """End whatever runs, in an order that leaves no client without its brokers."""
    with contextlib.ExitStack() as steps:  # each is done, also when one before it fails
        steps.callback(stage.sandbox.down)
        steps.callback(stage.loads.close)
        steps.callback(stage.loss.close)
        steps.callback(stage.open_transaction.close)
        steps.callback(end_child, stage.baseline_runs)
        steps.callback(end_child, stage.pager)  # takes what Tidemark sends at its end
        if not stage.stop_tidemark():
            say("Tidemark did not end in order and was killed. It last said:")
            for line in stage.last_words():
                say(f"  {line}")


def _settings(servers: str, data_dir: Path) -> str:
    """Return a file of settings; JSON's strings are TOML's."""
    return f"""\
[kafka]
name = "{CLUSTER}"
bootstrap_servers = {json.dumps(servers)}
request_timeout_seconds = 1.0
round_timeout_seconds = 1.9

[service]
data_dir = {json.dumps(str(data_dir))}
interval_seconds = {ROUND_SECONDS}
log_format = "json"

[nightly]
enabled = false

[http]
port = 0
"""


def _without_own_settings() -> list[str]:
    """Return options of `env`: the user's own settings are for the user's own cluster."""
    mine = [name for name in os.environ if name.startswith("TIDEMARK_")]
    return [word for name in mine for word in ("-u", name)]


def _is_ordinary(line: str) -> bool:
    """Whether a line of a service's log is no error and no warning."""
    with contextlib.suppress(ValueError):
        return json.loads(line).get("level") in ("info", "debug")
    return False


def _log_files(sandbox: Sandbox) -> str:
    """Return the settings that name the log files of all nodes."""
    return "".join(
        f"""
[[broker_logs.files]]
path = {json.dumps(str(sandbox.log_directory(node.id) / "*.log"))}
broker_id = {node.id}
name = "node {node.id}"
"""
        for node in sandbox.state.nodes
    )


def _address_in(log: Path) -> str | None:
    """Return the address in a service's log, once it is there."""
    with contextlib.suppress(OSError, ValueError):  # a line may be half written
        for line in log.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry.get("event") == Event.STARTING:
                return str(entry["address"])
    return None
