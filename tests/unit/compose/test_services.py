"""The services of the Compose stack agree with each other and with the code.

No engine is needed: what is proven here is what can be read. Whether the images start is not.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

import pytest

from service.sandbox.cluster.releases import DEFAULT_VERSION
from tests.unit.compose.stack import (
    BROKERS,
    COMPOSE,
    EXACT_TAG,
    ROOT,
    SERVICES,
    by_default,
    environment,
    listeners,
    secret,
)

BUILT_HERE: Final = "tidemark:local"
each_service = pytest.mark.parametrize("name", SERVICES)


def test_the_file_is_valid_against_the_compose_specification() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"),
            str(ROOT / "docker-compose.yml"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stack_is_whole() -> None:
    kafka = {"controller", *BROKERS}
    others = {"postgres", "tidemark", "prometheus", "alertmanager", "grafana"}
    assert set(SERVICES) == kafka | others


@each_service
def test_an_image_is_pinned_to_an_exact_version(name: str) -> None:
    image = SERVICES[name]["image"]
    if "build" in SERVICES[name]:
        assert image == BUILT_HERE
        assert SERVICES[name]["pull_policy"] == "build"
    else:
        assert EXACT_TAG.fullmatch(image.partition(":")[2]), image


@each_service
def test_a_service_tells_its_health_and_starts_again(name: str) -> None:
    test = SERVICES[name]["healthcheck"].get("test")
    assert test is None if "build" in SERVICES[name] else test[0] in {"CMD", "CMD-SHELL"}
    assert SERVICES[name]["restart"] == "unless-stopped"


@each_service
def test_a_service_runs_without_root_and_without_privileges(name: str) -> None:
    user = str(SERVICES[name]["user"]).partition(":")[0]
    assert user not in {"", "0", "root"}
    assert SERVICES[name]["cap_drop"] == ["ALL"]
    assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]


@each_service
def test_only_kafka_writes_to_its_root_file_system(name: str) -> None:
    assert SERVICES[name].get("read_only", False) == (name not in {"controller", *BROKERS})


@each_service
def test_logs_are_limited(name: str) -> None:
    assert set(SERVICES[name]["logging"]["options"]) == {"max-size", "max-file"}


@each_service
def test_ports_are_published_on_loopback_only(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port), port


def test_no_port_of_the_host_is_published_twice() -> None:
    ports = [p.split(":")[1] for service in SERVICES.values() for p in service.get("ports", [])]
    assert len(ports) == len(set(ports))


@each_service
def test_what_is_mounted_exists(name: str) -> None:
    for volume in map(by_default, SERVICES[name].get("volumes", [])):
        source, _, rest = volume.partition(":")
        if source.startswith("."):
            assert (ROOT / source).exists(), source
            assert rest.endswith(":ro"), volume
        else:
            assert source in COMPOSE["volumes"]


@each_service
def test_a_secret_that_is_used_is_declared_and_its_file_exists(name: str) -> None:
    for used in SERVICES[name].get("secrets", []):
        source = used if isinstance(used, str) else used["source"]
        assert secret(source)


@each_service
def test_a_secret_is_read_where_it_is_mounted(name: str) -> None:
    secrets = SERVICES[name].get("secrets", [])
    mounted = {f"/run/secrets/{used}" for used in secrets if isinstance(used, str)}
    values = SERVICES[name].get("environment", {}).values()
    assert {value for value in values if value.startswith("/run/secrets/")} <= mounted


def test_every_volume_is_used_by_one_service() -> None:
    used = [
        volume.partition(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", [])
        if not volume.startswith(".")
    ]
    assert sorted(used) == sorted(COMPOSE["volumes"])


@each_service
def test_a_dependency_is_a_service(name: str) -> None:
    assert set(SERVICES[name].get("depends_on", {})) <= set(SERVICES)


@pytest.mark.parametrize("name", ["controller", *BROKERS])
def test_kafka_is_the_version_of_the_sandbox(name: str) -> None:
    assert SERVICES[name]["image"] == f"apache/kafka:{DEFAULT_VERSION}"


def test_the_quorum_is_the_controller() -> None:
    controller = environment("controller")
    voter, _, address = controller["KAFKA_CONTROLLER_QUORUM_VOTERS"].partition("@")
    _, port = listeners(controller["KAFKA_LISTENERS"])["CONTROLLER"]
    assert voter == controller["KAFKA_NODE_ID"]
    assert address == f"controller:{port}"
    assert str(port) in SERVICES["controller"]["healthcheck"]["test"][-1]


def test_all_nodes_are_of_one_cluster_and_have_ids_of_their_own() -> None:
    nodes = [environment(name) for name in ("controller", *BROKERS)]
    for key in ("CLUSTER_ID", "KAFKA_CONTROLLER_QUORUM_VOTERS"):
        assert len({node[key] for node in nodes}) == 1
    assert len({node["KAFKA_NODE_ID"] for node in nodes}) == len(nodes)
    assert [node["KAFKA_PROCESS_ROLES"] for node in nodes] == ["controller", *["broker"] * 3]


@pytest.mark.parametrize("name", BROKERS)
def test_a_broker_advertises_what_it_listens_on(name: str) -> None:
    broker = environment(name)
    bound = listeners(broker["KAFKA_LISTENERS"])
    told = listeners(broker["KAFKA_ADVERTISED_LISTENERS"])
    protocols = dict(
        pair.split(":") for pair in broker["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")
    )
    assert set(bound) == set(told) <= set(protocols)
    assert told["INTERNAL"] == (name, bound["INTERNAL"][1])
    assert SERVICES[name]["ports"] == [f"127.0.0.1:{told['HOST'][1]}:{bound['HOST'][1]}"]
    assert told["HOST"][0] == "localhost"
    assert str(bound["INTERNAL"][1]) in SERVICES[name]["healthcheck"]["test"][-1]
