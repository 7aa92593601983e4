"""`tidemark doctor` on real brokers: each missing permission is named, and its own commands grant it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from rules.facts.permissions import NEEDED, NeededPermission, Operation
from service.cli.main import run
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import Permission, SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.tools import run_quietly
from service.terminal.exit_codes import ExitCode
from tests.integration.clients import commit_offset
from tests.kafka_release import SCRAM_USERS

pytestmark = pytest.mark.integration

SOON = 60.0  # seconds until every broker knows a change of ACLs
OPERATIONS = {"Describe": "describe", "DescribeConfigs": "describe_configs", "Read": "read"}
PASSWORD = "patient-sandbox-only"  # noqa: S105 - of a user of this file alone, on loopback


@dataclass(frozen=True, kw_only=True)
class Patient:
    """A user on the listener that checks ACLs, and the topics that are observed."""

    name: str
    prefix: str
    cluster: Sandbox
    admin: SandboxAdmin
    capsys: pytest.CaptureFixture[str]

    def doctor(self, *arguments: str) -> tuple[int, str]:
        """Run the command, and return its exit code and what it printed."""
        self.capsys.readouterr()
        code = run(
            [
                *("doctor", "--bootstrap-servers", self.cluster.sasl_bootstrap_servers),
                *("--security-protocol", "SASL_PLAINTEXT", "--sasl-username", self.name),
                *("--topics", rf"{self.prefix}.*", *arguments),
            ]
        )
        return code, self.capsys.readouterr().out

    def checks(self) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
        code, printed = self.doctor("-o", "json")
        document = json.loads(printed)
        return code, document, document["checks"]

    def missing(self) -> set[str | None]:
        """Return the keys of what is missing; None of what is no permission."""
        return {check["key"] for check in self.checks()[2] if check["state"] == "missing"}

    def settles_on(self, keys: set[str]) -> bool:
        """Wait until exactly these permissions are missing, on every broker."""
        return wait_until(lambda: self.missing() == keys, timeout_seconds=SOON)

    def commands(self, *arguments: str) -> list[str]:
        """Return the commands that `--acls` prints."""
        _, printed = self.doctor("--acls", f"User:{self.name}", *arguments)
        return [line for line in printed.splitlines() if not line.startswith("#")]


@pytest.fixture
def patient(
    cluster: Sandbox,
    admin: SandboxAdmin,
    new_name: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Patient]:
    prefix = new_name("patient")
    user = admin.create_user(f"{prefix}-user", PASSWORD)
    admin.create_topic(f"{prefix}-orders")
    commit_offset(cluster.bootstrap_servers, f"{prefix}-group", f"{prefix}-orders", 0)
    monkeypatch.setenv("TIDEMARK_KAFKA__SASL_PASSWORD", PASSWORD)
    made = Patient(name=user.name, prefix=prefix, cluster=cluster, admin=admin, capsys=capsys)
    given = [permission_of(line) for line in made.commands("--all")]
    admin.grant(given)
    yield made
    admin.revoke(given)


def permission_of(command: str) -> Permission:
    """Read a command of `kafka-acls.sh` as the permission that it grants."""
    words = shlex.split(command)
    assert words[0] == "kafka-acls.sh"
    assert "--add" in words
    resource = next(
        w for w in ("cluster", "topic", "group", "transactional-id") if f"--{w}" in words
    )
    return Permission(
        user=after(words, "--allow-principal").removeprefix("User:"),
        operation=OPERATIONS[after(words, "--operation")],
        resource=resource.replace("-", "_"),
        name="*" if resource == "cluster" else after(words, f"--{resource}"),
        is_prefix="prefixed" in words,
    )


def after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def taken_with(needed: NeededPermission) -> list[NeededPermission]:
    """Return what has to be taken to take a permission: READ includes DESCRIBE on the same resource."""
    return [
        other
        for other in NEEDED
        if other is needed
        or (
            (other.resource, other.name) == (needed.resource, needed.name)
            and (other.operation, needed.operation) == (Operation.READ, Operation.DESCRIBE)
        )
    ]


@SCRAM_USERS
def test_each_missing_permission_is_named_and_its_command_grants_it(patient: Patient) -> None:
    command_of = dict(zip([each.key for each in NEEDED], patient.commands("--all"), strict=True))
    assert patient.settles_on(set()), patient.missing()
    code, document, checks = patient.checks()
    assert (code, document["exit_code"]) == (ExitCode.OK, 0), checks
    assert "unknown" not in {check["state"] for check in checks}, checks
    for needed in NEEDED:
        keys = {each.key for each in taken_with(needed)}
        patient.admin.revoke([permission_of(command_of[key]) for key in keys])
        assert patient.settles_on(keys), (needed.title, patient.missing())
        code, _, checks = patient.checks()
        assert code == ExitCode.INCOMPLETE
        assert patient.commands() == [command_of[key] for key in command_of if key in keys]
        named = {c["key"]: c["acl"]["command"] for c in checks if c["state"] == "missing"}
        assert named == {key: command_of[key] for key in keys}
        patient.admin.grant([permission_of(line) for line in patient.commands()])
        assert patient.settles_on(set()), needed.title


@SCRAM_USERS
def test_kafkas_own_tool_takes_the_command(patient: Patient) -> None:
    [command] = [line for line in patient.commands("--all") if "DescribeConfigs --topic" in line]
    patient.admin.revoke([permission_of(command)])
    assert wait_until(lambda: patient.commands() == [command], timeout_seconds=SOON)
    tool, *words = shlex.split(command)
    words[words.index("--bootstrap-server") + 1] = patient.cluster.bootstrap_servers
    run_quietly(patient.cluster, tool, words)
    assert patient.settles_on(set()), patient.missing()
