"""The sandbox on real brokers: its states, its promises at the end, and what it rejects."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined] # re-exports without saying so
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from rules.errors import SandboxError
from service.runtime.clock import wait_until
from service.sandbox.cluster import jars, processes
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox, SandboxOptions
from service.sandbox.cluster.commands import marker
from service.sandbox.cluster.layout import node_layout
from service.sandbox.cluster.processes import Liveness
from service.sandbox.cluster.state import (
    PORTS_NEEDED,
    ProcessId,
    SandboxState,
    plan_nodes,
    read_state,
    write_state,
)
from service.sandbox.cluster.users import OBSERVER, User
from tests.integration.sandbox_commands import NODES, fake_java, run, tidemark

pytestmark = [pytest.mark.integration, pytest.mark.brokers]
LOG_LINE = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] [A-Z]+ .+ \([\w.$]+\)")


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path_factory.mktemp("sandbox") / "kafka")
    made.up()
    try:
        yield made
    finally:
        made.down()


@pytest.fixture(scope="module")
def admin(sandbox: Sandbox) -> SandboxAdmin:
    return SandboxAdmin(sandbox.bootstrap_servers)


def states(sandbox: Sandbox) -> dict[int, str]:
    return {status.node.id: status.liveness for status in sandbox.status()}


def pids(sandbox: Sandbox) -> dict[int, int]:
    return {n.id: n.process.pid for n in sandbox.state.nodes if n.process is not None}


def client_of(sandbox: Sandbox, user: User, mechanism: str = "SCRAM-SHA-512") -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": sandbox.sasl_bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user.name,
            "sasl.password": user.password,
            "log_level": 0,
        }
    )


def test_a_second_up_changes_nothing(sandbox: Sandbox) -> None:
    before = pids(sandbox)
    assert sandbox.up().started == ()
    assert pids(sandbox) == before
    assert set(states(sandbox)) == set(NODES)


def test_all_four_processes_fit_into_one_and_a_half_gibibytes(sandbox: Sandbox) -> None:
    assert sum(status.resident_bytes or 0 for status in sandbox.status()) < 1.5 * 2**30


def test_pause_and_resume_freeze_and_thaw_the_same_process(sandbox: Sandbox) -> None:
    pid = pids(sandbox)[3]
    assert sandbox.pause(3)
    assert states(sandbox)[3] == Liveness.PAUSED
    assert not sandbox.pause(3)
    with pytest.raises(SandboxError, match="resume 3"):
        sandbox.start(3)
    assert sandbox.up().paused == (3,)
    assert states(sandbox)[3] == Liveness.PAUSED
    assert sandbox.resume(3)
    assert not sandbox.resume(3)
    assert states(sandbox)[3] == Liveness.RUNNING
    assert pids(sandbox)[3] == pid


def test_a_killed_broker_comes_back_with_its_identity(
    sandbox: Sandbox, admin: SandboxAdmin
) -> None:
    meta = node_layout(sandbox.directory, 1).data / "meta.properties"
    identity, address = meta.read_text(), sandbox.broker_address(1)
    assert sandbox.kill(1)
    assert states(sandbox)[1] == Liveness.DEAD
    assert not sandbox.kill(1)
    for act in (sandbox.pause, sandbox.resume):
        with pytest.raises(SandboxError, match="start 1"):
            act(1)
    assert sandbox.start(1)
    assert not sandbox.start(1)
    assert (states(sandbox)[1], sandbox.broker_address(1)) == (Liveness.RUNNING, address)
    directory_id = re.compile(r"directory\.id=.+")
    assert directory_id.findall(meta.read_text()) == directory_id.findall(identity)
    admin.create_topic("led-by-one", assignment=[[1]])


def test_up_starts_only_what_is_missing(sandbox: Sandbox) -> None:
    before = pids(sandbox)
    sandbox.kill(2)
    sandbox.kill(100)
    with pytest.raises(SandboxError, match="controller is not running"):
        sandbox.start(2)
    assert set(sandbox.up().started) == {2, 100}
    after = pids(sandbox)
    assert {n for n in NODES if after[n] != before[n]} == {2, 100}
    assert set(states(sandbox).values()) == {Liveness.RUNNING}


def test_a_node_that_cannot_start_names_its_log(sandbox: Sandbox) -> None:
    properties = node_layout(sandbox.directory, 3).properties
    good = properties.read_text()
    sandbox.kill(3)
    properties.write_text(good + "num.io.threads=none\n")
    try:
        with pytest.raises(SandboxError, match=r"broker 3 ended .*\.log says: .*num\.io\.threads"):
            sandbox.start(3)
        assert states(sandbox)[3] == Liveness.DEAD
    finally:
        properties.write_text(good)
        sandbox.start(3)


def test_an_unknown_node_is_rejected(sandbox: Sandbox) -> None:
    for act in (sandbox.kill, sandbox.pause, sandbox.resume, sandbox.start):
        with pytest.raises(SandboxError, match="no node 7"):
            act(7)


def test_topics_and_settings_change_at_run_time(sandbox: Sandbox, admin: SandboxAdmin) -> None:
    admin.create_topic("placed", assignment=[[2, 1], [3, 1]], configs={"retention.ms": "1000"})
    listed = AdminClient({"bootstrap.servers": sandbox.bootstrap_servers}).list_topics(timeout=180)
    assert [p.replicas for _, p in sorted(listed.topics["placed"].partitions.items())] == [
        [2, 1],
        [3, 1],
    ]
    admin.set_topic_config("placed", {"retention.ms": None, "min.insync.replicas": "1"})
    topic = {"retention.ms": "604800000", "min.insync.replicas": "1"}
    assert is_soon_described(sandbox, ConfigResource("topic", "placed"), topic)
    admin.set_broker_config(2, {"log.cleaner.threads": "2"})
    assert is_soon_described(sandbox, ConfigResource("broker", "2"), {"log.cleaner.threads": "2"})
    admin.delete_topic("placed")
    with pytest.raises(SandboxError, match="placed"):
        admin.delete_topic("placed")
    with pytest.raises(SandboxError, match="broker 9"):
        admin.set_broker_config(9, {"log.cleaner.threads": "2"})


def admin_client(sandbox: Sandbox) -> AdminClient:
    return AdminClient({"bootstrap.servers": sandbox.bootstrap_servers})


def described(client: AdminClient, resource: ConfigResource) -> Mapping[str, str]:
    answer = client.describe_configs([resource])[resource].result(timeout=180)
    return {name: entry.value for name, entry in answer.items()}


def is_soon_described(
    sandbox: Sandbox, resource: ConfigResource, wanted: Mapping[str, str]
) -> bool:
    """Await the settings: the controller answers before every broker has heard of a change."""
    client = admin_client(sandbox)
    return wait_until(
        lambda: wanted.items() <= described(client, resource).items(), timeout_seconds=180
    )


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "SCRAM-SHA-256"])
def test_observer_sees_everything_and_changes_nothing(
    sandbox: Sandbox, admin: SandboxAdmin, mechanism: str
) -> None:
    topic = f"seen-{mechanism.lower()}"
    admin.create_topic(topic)
    observer = client_of(sandbox, OBSERVER, mechanism)
    assert topic in observer.list_topics(timeout=180).topics
    assert described(observer, ConfigResource("topic", topic))
    assert observer.describe_cluster().result(timeout=180).controller is not None
    assert observer.list_consumer_groups().result(timeout=180).errors == []
    with pytest.raises(KafkaException, match="AUTHORIZATION_FAILED"):
        observer.create_topics([NewTopic("rejected", 1, 1)])["rejected"].result(timeout=180)
    assert described(observer, ConfigResource("broker", "1"))  # posture needs them
    other = ConfigEntry("log.retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource("broker", "1", incremental_configs=[other])
    with pytest.raises(KafkaException, match="AUTHORIZATION_FAILED"):
        observer.incremental_alter_configs([changed])[changed].result(timeout=180)


def test_a_user_sees_what_was_granted_until_it_is_revoked(
    sandbox: Sandbox, admin: SandboxAdmin
) -> None:
    admin.create_topic("guarded")
    client = client_of(sandbox, admin.create_user("nobody", "nobody-password"))
    permission = Permission(user="nobody", operation="describe", resource="topic", name="guarded")

    def sees_it() -> bool:
        return "guarded" in client.list_topics(timeout=180).topics

    assert not sees_it()
    admin.grant([permission])
    assert wait_until(sees_it, timeout_seconds=180)
    admin.revoke([permission])
    assert wait_until(lambda: not sees_it(), timeout_seconds=180)


def test_a_wrong_password_is_rejected(sandbox: Sandbox) -> None:
    client = client_of(sandbox, User(name=OBSERVER.name, password="wrong"))  # noqa: S106 - wrong
    with pytest.raises(KafkaException):
        client.list_topics(timeout=3)


def test_the_tls_listener_is_trusted_by_its_own_certificate_only(sandbox: Sandbox) -> None:
    address: dict[str, str | int | float | bool] = {
        "bootstrap.servers": sandbox.tls_bootstrap_servers,
        "security.protocol": "SSL",
        "log_level": 0,
    }
    trusting = AdminClient({**address, "ssl.ca.location": str(sandbox.tls_ca_file)})
    assert set(trusting.list_topics(timeout=180).brokers) == {1, 2, 3}
    with pytest.raises(KafkaException):
        AdminClient(address).list_topics(timeout=2)


def test_the_metrics_pages_show_the_series_that_rules_read(
    sandbox: Sandbox, admin: SandboxAdmin
) -> None:
    admin.create_topic("measured", assignment=[[1, 2, 3]])
    producer = Producer(
        {"bootstrap.servers": sandbox.bootstrap_servers, "transactional.id": "measured"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("measured", b"one")
    producer.commit_transaction(30)
    broker, controller = (page(sandbox.metrics_url(node)) for node in (1, 100))
    assert 'kafka_network_requestmetrics_errors_total{error="NONE",request="Produce"}' in broker
    assert 'kafka_cluster_partition_laststableoffsetlag{partition="0",topic="measured"} ' in broker
    assert "\nkafka_server_brokertopicmetrics_failedproducerequests_total " in broker
    assert "\nkafka_server_replicamanager_underreplicatedpartitions " in broker
    assert "\nkafka_controller_controllerstats_uncleanleaderelections_total " in controller
    assert "# TYPE kafka_network_requestmetrics_errors_total counter" in broker


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own loopback page
        text: str = answer.read().decode()
    return text


@pytest.mark.parametrize(
    ("node", "name"),
    [(1, "server.log"), (1, "state-change.log"), (100, "controller.log"), (100, "server.log")],
)
def test_log_files_have_kafkas_names_and_pattern(
    sandbox: Sandbox, admin: SandboxAdmin, node: int, name: str
) -> None:
    admin.create_topic(f"logged-{node}-{name}")  # something to write a line about
    lines = (sandbox.log_directory(node) / name).read_text().splitlines()
    assert LOG_LINE.fullmatch(lines[0]), lines[0]


def test_two_ups_at_once_make_one_cluster_and_down_leaves_only_foreign_files(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "game-day"
    with tidemark("up", directory=directory) as one, tidemark("up", directory=directory) as two:
        answers = [process.communicate(timeout=180) for process in (one, two)]
    assert (one.returncode, two.returncode) == (0, 0), answers
    assert sum("running already" in out for out, _ in answers) == 1
    code, out, _ = run("status", "-o", "json", directory=directory)
    found = {node["id"]: node for node in json.loads(out)["nodes"]}
    assert (code, {node["state"] for node in found.values()}) == (0, {"running"})
    assert len(processes.find_marked(marker(directory))) == len(NODES)

    assert run("kill", "2", directory=directory)[0] == 0
    assert run("status", directory=directory)[0] == 1
    (directory / "sandbox.json").unlink()  # a lost memory must not leave orphans
    foreign = [directory / "notes.txt", directory / "node-1/data/copy-0/dump.txt"]
    foreign[1].parent.mkdir()
    for path in foreign:
        path.write_text("mine")
    code, out, _ = run("down", directory=directory)
    assert code == 0
    assert all(str(path) in out for path in foreign)
    assert processes.find_marked(marker(directory)) == []
    assert sorted(path for path in directory.rglob("*") if path.is_file()) == sorted(foreign)


def test_a_stale_pid_that_belongs_to_a_stranger_is_never_signalled(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "stale")
    sandbox.directory.mkdir()
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as stranger:
        remembered = ProcessId(
            pid=stranger.pid, started=psutil.Process(stranger.pid).create_time() - 3600
        )
        write_state(sandbox.directory, pretended_state(remembered))
        assert set(states(sandbox).values()) == {Liveness.DEAD}
        assert not sandbox.kill(1)
        sandbox.down()
        assert stranger.poll() is None
        stranger.kill()
    assert not sandbox.directory.exists()


def test_a_damaged_state_file_is_told_and_cleared_by_down(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    (tmp_path / "sandbox.json").write_text('{"nodes": ')
    with pytest.raises(SandboxError, match=r"sandbox\.json is damaged .* down"):
        sandbox.status()
    sandbox.down()
    assert read_state(tmp_path) is None


def pretended_state(process: ProcessId) -> SandboxState:
    state = SandboxState(
        cluster_id="abc",
        java="/nowhere/java",
        cache="/nowhere",
        options=SandboxOptions(),
        nodes=plan_nodes(list(range(1, 1 + PORTS_NEEDED))),
        was_ready=True,
    )
    for node in NODES:
        state = state.with_process(node, process)
    return state


@pytest.mark.parametrize("harm", ["flip", "truncate", "remove"])
def test_a_damaged_jar_is_found_and_a_failed_download_leaves_no_half_cache(
    tmp_path: Path, sandbox: Sandbox, harm: str
) -> None:
    shutil.copytree(Path(sandbox.state.cache) / "jars", tmp_path / "cache/jars")
    victim = tmp_path / "cache/jars/kafka-raft-4.1.1.jar"
    damage(victim, harm)
    listed = jars.read_lock(sandbox.state.release.lock_file)
    assert [jar.file_name for jar in jars.damaged(tmp_path / "cache/jars", listed)] == [victim.name]

    offline = fake_java(tmp_path / "bin", "echo 'java.net.UnknownHostException: nowhere'; exit 1")
    told: list[str] = []
    with pytest.raises(SandboxError, match="UnknownHostException: nowhere"):
        jars.ensure_jars(tmp_path / "cache", listed, java=offline, progress=told.append)
    assert victim.name in told[0]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["jars"]


def damage(path: Path, harm: str) -> None:
    content = bytearray(path.read_bytes())
    path.unlink()
    match harm:
        case "flip":
            content[1000] ^= 1
            path.write_bytes(content)
        case "truncate":
            path.write_bytes(content[:-1])


@pytest.mark.parametrize(
    "main_class",
    ["org.apache.kafka.tools.VerifiableProducer", "org.apache.kafka.tools.TransactionsCommand"],
)
def test_kafkas_tools_find_their_classes(main_class: str, sandbox: Sandbox) -> None:
    folder = Path(sandbox.state.cache) / "jars"
    release = sandbox.state.release
    path = jars.classpath(folder, jars.read_lock(release.lock_file), release.version)
    command = [sandbox.state.java, "-cp", path, main_class, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert "usage" in done.stdout
    assert "NoClassDefFoundError" not in done.stderr
