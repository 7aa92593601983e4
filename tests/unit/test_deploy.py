"""The unit of systemd and the manifests of Kubernetes agree with themselves and with the code.

Whether they are valid is what systemd-analyze and kubeconform say; docs/install.md tells which ones were asked.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from rules.version import VERSION
from service.api.status.health import health_routes
from service.rounds.latest import Latest
from service.settings import Settings, read_settings
from service.settings.sources import FILE_SUFFIX, PREFIX
from service.terminal.exit_codes import ExitCode
from tests.unit.service.api.given import no_service_state

ROOT: Final = Path(__file__).parents[2]
KUBERNETES: Final = ROOT / "docs" / "deploy" / "kubernetes"
SYSTEMD: Final = ROOT / "docs" / "deploy" / "systemd"
SECRETS: Final = "/run/secrets/tidemark"
LABEL: Final = {"app.kubernetes.io/name": "tidemark"}


def manifest(name: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((KUBERNETES / name).read_text(encoding="utf-8"))
    return read


POD: Final = manifest("deployment.yaml")["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
ENVIRONMENT: Final = {each["name"]: each["value"] for each in CONTAINER["env"]}
MOUNTS: Final = {each["mountPath"]: each["name"] for each in CONTAINER["volumeMounts"]}


def unit() -> dict[str, list[str]]:
    """Return the values of the unit's keys, in order."""
    values = defaultdict[str, list[str]](list)
    for line in (SYSTEMD / "tidemark.service").read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            values[key].append(value)
    return values


def settings_of(environment: dict[str, str], tmp_path: Path, path: Path | None) -> Settings:
    """Read settings as the process would, each secret from a file of the test."""
    secret = tmp_path / "secret"
    secret.write_text("of-a-test-and-long-enough")
    given = {
        name: str(secret) if name.endswith(FILE_SUFFIX) else value
        for name, value in environment.items()
        if name.startswith(PREFIX)
    }
    return read_settings(given, path=path)


def test_every_resource_is_listed_and_every_file_is_there() -> None:
    kustomization = manifest("kustomization.yaml")
    [settings] = kustomization["configMapGenerator"]
    listed = {*kustomization["resources"], *settings["files"], *kustomization["components"]}
    assert listed | {"kustomization.yaml"} == {path.name for path in KUBERNETES.iterdir()}
    assert kustomization["images"][0]["name"] == CONTAINER["image"]
    assert kustomization["images"][0]["newTag"] == VERSION


def test_the_settings_of_the_pod_are_accepted(tmp_path: Path) -> None:
    settings = settings_of(ENVIRONMENT, tmp_path, KUBERNETES / "tidemark.toml")
    assert settings.http.token is not None
    assert settings.kafka.sasl_password is not None
    assert POD["enableServiceLinks"] is False, "TIDEMARK_SERVICE_HOST is no setting"
    assert settings.service.drain_seconds < POD["terminationGracePeriodSeconds"]


def test_secrets_are_those_that_the_page_makes() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    made = set(re.findall(r"--from-(?:literal|file)=([\w.]+)", page))
    toml = (KUBERNETES / "tidemark.toml").read_text(encoding="utf-8")
    used = re.findall(rf"{SECRETS}/([\w.]+)", toml + " ".join(ENVIRONMENT.values()))
    assert set(used) == made
    monitor = manifest("podmonitor/podmonitor.yaml")["spec"]["podMetricsEndpoints"][0]
    assert monitor["authorization"]["credentials"]["key"] in made


def test_one_port_is_probed_served_scraped_and_open(tmp_path: Path) -> None:
    [port] = CONTAINER["ports"]
    assert port["containerPort"] == settings_of({}, tmp_path, None).http.port
    [service] = manifest("service.yaml")["spec"]["ports"]
    [scraped] = manifest("podmonitor/podmonitor.yaml")["spec"]["podMetricsEndpoints"]
    [opened] = manifest("networkpolicy.yaml")["spec"]["ingress"][0]["ports"]
    probes = [CONTAINER[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    names = {service["targetPort"], scraped["port"], opened["port"]}
    assert names | {probe["port"] for probe in probes} == {port["name"]}
    assert service["port"] == port["containerPort"]
    paths = {route.path for route in health_routes(Latest(no_service_state()))}
    assert {probe["path"] for probe in probes} == paths


def test_there_is_never_a_second_one_and_it_has_no_rights() -> None:
    deployment = manifest("deployment.yaml")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    pod, container = POD["securityContext"], CONTAINER["securityContext"]
    assert f"USER {pod['runAsUser']}:{pod['runAsGroup']}\n" in dockerfile
    assert pod["runAsNonRoot"]
    assert pod["fsGroupChangePolicy"] == "OnRootMismatch"
    assert container["readOnlyRootFilesystem"]
    assert not container["allowPrivilegeEscalation"]
    assert container["capabilities"] == {"drop": ["ALL"]}
    assert {"/var/lib/tidemark", "/tmp", SECRETS} < MOUNTS.keys()  # noqa: S108 - a mount


def test_what_selects_pods_selects_this_one() -> None:
    [label] = manifest("kustomization.yaml")["labels"]
    assert (label["pairs"], label["includeSelectors"]) == (LABEL, True)
    for name in ("networkpolicy.yaml", "podmonitor/podmonitor.yaml"):
        spec = manifest(name)["spec"]
        assert (spec.get("podSelector") or spec["selector"])["matchLabels"] == LABEL


def test_the_unit_runs_what_is_there_with_settings_that_are_accepted(tmp_path: Path) -> None:
    keys = unit()
    pairs = [pair.split("=", 1) for line in keys["Environment"] for pair in line.split()]
    settings = settings_of(
        {**dict(pairs), "TIDEMARK_KAFKA__BOOTSTRAP_SERVERS": "b:1"}, tmp_path, None
    )
    [folder] = keys["StateDirectory"]
    assert str(settings.service.data_directory()) == f"/var/lib/{folder}"
    assert settings.service.drain_seconds < int(keys["TimeoutStopSec"][0])
    program, command = keys["ExecStart"][0].split()[:2]
    assert command == "serve"
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert f"{Path(program).parent}/pip install 'tidemark[nightly] @ git+URL'" in page
    assert keys["RestartPreventExitStatus"] == [f"{ExitCode.USAGE:d} {ExitCode.SETTINGS:d}"]


@pytest.mark.parametrize("key", ["User", "Group"])
def test_the_user_of_the_unit_is_made(key: str) -> None:
    made = (SYSTEMD / "tidemark.sysusers").read_text(encoding="utf-8").splitlines()[-1].split()
    assert [made[1]] == unit()[key]
