"""The Compose stack and the image agree with themselves and with the code.

No engine is needed: what is proven here is what can be read. Whether the images start is not.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from ruamel.yaml import YAML

from dashboards.files import RECORDED_FOLDER, TITLE
from dashboards.links import RULE_PAGES_DEFAULT
from rules.catalogue.all_rules import EVERY
from service.alerting.receivers.receivers import AlertmanagerReceiver
from service.sandbox.cluster.releases import DEFAULT_VERSION
from service.settings import Settings, read_settings
from service.settings.advice import is_loopback
from service.settings.sources import FILE_SUFFIX, PREFIX
from tests.unit.dashboards.prometheus.cases import ALERTS

ROOT: Final = Path(__file__).parents[2]
STACK: Final = ROOT / "dashboards" / "stack"
EXACT_TAG: Final = re.compile(r"v?\d+\.\d+(\.\d+)?(-[a-z0-9]+)*")
BUILT_HERE: Final = "tidemark:local"
INTERPOLATION: Final = re.compile(r"\$\{[A-Z_]+:-(?P<default>[^}]*)\}")
BROKERS: Final = ("broker-1", "broker-2", "broker-3")


def read_yaml(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


COMPOSE: Final[Mapping[str, Any]] = read_yaml(ROOT / "docker-compose.yml")
SERVICES: Final[Mapping[str, Any]] = COMPOSE["services"]
each_service = pytest.mark.parametrize("name", SERVICES)


def by_default(value: str) -> str:
    """Return what Compose makes of the value where no variable is set."""
    return INTERPOLATION.sub(lambda match: match["default"], value)


def secret_file(name: str) -> Path:
    return ROOT / by_default(COMPOSE["secrets"][name]["file"])


def secret(name: str) -> str:
    return secret_file(name).read_text(encoding="utf-8").rstrip("\n")


def environment(service: str) -> dict[str, str]:
    return {key: by_default(value) for key, value in SERVICES[service]["environment"].items()}


def listeners(text: str) -> dict[str, tuple[str, int]]:
    """Read NAME://host:port,... as name -> (host, port); an empty host is every address."""
    found = {}
    for listener in text.split(","):
        name, address = listener.split("://")
        host, port = address.rsplit(":", 1)
        found[name] = (host, int(port))
    return found


# ------------------------------------------------------------------ the file
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


# ------------------------------------------------------------------ what it refers to
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


# ------------------------------------------------------------------ Kafka
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


# ------------------------------------------------------------------ Tidemark
def image_environment() -> dict[str, str]:
    """Read what the image sets, ours only."""
    set_by = [line for line in final_stage() if line.startswith("ENV ")]
    pairs = [pair.split("=", 1) for line in set_by for pair in line.split()[1:]]
    return {key: value for key, value in pairs if key.startswith(PREFIX)}


def tidemark_settings(alerts_by: str = "tidemark") -> Settings:
    """Read the service's file and environment as the process would, secrets from the repository's files."""
    values = image_environment()
    for key, value in environment("tidemark").items():
        is_secret = key.endswith(FILE_SUFFIX)
        values[key] = str(secret_file(Path(value).name)) if is_secret else value
    return read_settings(values, path=STACK / "alerts_by" / alerts_by / "tidemark.toml")


def mounts(name: str) -> dict[str, str]:
    """Return what a service has mounted, by its place in the container, as Compose's file has it."""
    volumes = [volume.removesuffix(":ro") for volume in SERVICES[name]["volumes"]]
    return {place: source for source, _, place in (volume.rpartition(":") for volume in volumes)}


def test_tidemark_reads_the_file_that_is_mounted() -> None:
    assert SERVICES["tidemark"]["command"] == ["serve", "--config", "/etc/tidemark/tidemark.toml"]
    assert (
        by_default(mounts("tidemark")["/etc/tidemark"]) == "./dashboards/stack/alerts_by/tidemark"
    )


def test_every_setting_of_tidemark_is_known_and_accepted() -> None:
    assert all(key.startswith(PREFIX) for key in environment("tidemark"))
    assert tidemark_settings().kafka.name == "compose"


def test_tidemark_answers_where_it_is_published_and_only_with_a_token() -> None:
    http = tidemark_settings().http
    assert not is_loopback(http)
    assert SERVICES["tidemark"]["ports"] == [f"127.0.0.1:{http.port}:{http.port}"]
    assert http.token is not None


def test_tidemark_keeps_its_data_on_its_volume() -> None:
    folder = tidemark_settings().service.data_dir
    assert mounts("tidemark")[str(folder)] == "tidemark"


def test_tidemark_is_pointed_at_the_brokers_of_the_stack() -> None:
    internal = [environment(name)["KAFKA_ADVERTISED_LISTENERS"] for name in BROKERS]
    addresses = [f"{host}:{port}" for host, port in (listeners(i)["INTERNAL"] for i in internal)]
    assert tidemark_settings().kafka.bootstrap_servers.split(",") == addresses


def test_the_database_url_and_the_database_have_one_password() -> None:
    url, database = urlsplit(secret("database_url")), environment("postgres")
    assert url.password == secret("postgres_password")
    assert url.username == database["POSTGRES_USER"]
    assert url.path == f"/{database['POSTGRES_DB']}"
    assert (url.hostname, url.port) == ("postgres", 5432)


def test_the_token_is_long_enough_to_be_accepted() -> None:
    assert len(secret("http_token")) >= 16


def test_postgres_keeps_its_data_where_its_major_version_does() -> None:
    major = int(SERVICES["postgres"]["image"].partition(":")[2].partition(".")[0])
    folder = "/var/lib/postgresql" if major >= 18 else "/var/lib/postgresql/data"
    assert f"postgres:{folder}" in SERVICES["postgres"]["volumes"]


# ------------------------------------------------------------------ the image
def instructions() -> list[str]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def final_stage() -> list[str]:
    last = max(i for i, line in enumerate(instructions()) if line.startswith("FROM "))
    return instructions()[last:]


def test_both_stages_stand_on_one_exact_python() -> None:
    bases = {line.split()[1] for line in instructions() if line.startswith("FROM ")}
    assert len(bases) == 1
    name, _, tag = bases.pop().partition(":")
    assert name == "python"
    assert EXACT_TAG.fullmatch(tag)


def test_the_image_holds_every_package_of_ours() -> None:
    copied = {line.split()[1].rstrip("/") for line in instructions() if line.startswith("COPY ")}
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"} <= copied
    for line in instructions():
        if line.startswith("COPY ") and "--from" not in line:
            assert all((ROOT / source).exists() for source in line.split()[1:-1]), line


def test_nothing_that_is_copied_is_ignored() -> None:
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    assert "*" in ignore
    assert "dashboards/stack" in ignore
    for line in instructions():
        if line.startswith("COPY ") and "--from" not in line:
            assert {source.rstrip("/") for source in line.split()[1:-1]} <= allowed, line


def test_the_image_and_the_stack_run_as_one_user() -> None:
    (user,) = [line.split()[1] for line in final_stage() if line.startswith("USER ")]
    assert user == SERVICES["tidemark"]["user"]
    assert "STOPSIGNAL SIGTERM" in final_stage()
    assert any(line.startswith("HEALTHCHECK ") for line in final_stage())


def test_the_image_alone_can_be_reached_and_keeps_its_data_on_a_volume() -> None:
    settings = read_settings(image_environment())
    assert not is_loopback(settings.http)
    assert f"EXPOSE {settings.http.port}" in final_stage()
    assert f'VOLUME ["{settings.service.data_dir}"]' in final_stage()


def test_a_user_that_only_has_the_group_of_root_can_write_the_data() -> None:
    folder = image_environment()["TIDEMARK_SERVICE__DATA_DIR"]
    (made,) = [line for line in final_stage() if "install --directory" in line]
    options = made.partition("install --directory ")[2].split()
    assert options == ["--owner=10001", "--group=0", "--mode=0770", folder]


def pins(file: str) -> dict[str, set[str]]:
    """Read a lock as pin (name==version) -> hashes."""
    found: dict[str, set[str]] = {}
    pin = ""
    for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
        if match := re.match(r"[a-z0-9-]+==[^ ]+", line):
            pin = match[0]
            found.setdefault(pin, set())
        elif match := re.search(r"--hash=(sha256:[0-9a-f]{64})", line):
            found[pin].add(match[1])
    return found


def test_the_lock_of_the_image_is_a_part_of_the_lock_of_the_developers() -> None:
    run, everything = pins("requirements-run.txt"), pins("requirements.txt")
    assert run
    assert {pin: everything.get(pin) for pin in run} == run
    assert not {pin.partition("==")[0] for pin in run} & {"pytest", "ruff", "mypy", "setuptools"}


# ------------------------------------------------------------------ who watches Tidemark
def test_prometheus_reaches_services_of_the_stack_with_the_token_that_is_mounted() -> None:
    config = read_yaml(STACK / "prometheus.yml")
    (job,) = [job for job in config["scrape_configs"] if job["job_name"] == "tidemark"]
    (mounted,) = SERVICES["prometheus"]["secrets"]
    assert mounted["target"] == f"/etc/prometheus/{job['authorization']['credentials_file']}"
    port = tidemark_settings().http.port
    assert job["static_configs"] == [{"targets": [f"tidemark:{port}"]}]


# ------------------------------------------------------------------ who delivers alerts
def alert_files(alerts_by: str) -> set[str]:
    return {path.name for path in (STACK / "alerts_by" / alerts_by).glob("*.yml")}


@pytest.mark.parametrize("alerts_by", ["tidemark", "prometheus"])
def test_either_tidemark_or_prometheus_delivers_alerts_on_kafka(alerts_by: str) -> None:
    is_tidemark = tidemark_settings(alerts_by).alerting.routing().default is not None
    assert is_tidemark is (alerts_by == "tidemark")
    assert alert_files(alerts_by) == (set() if is_tidemark else {"tidemark_alerting.yml"})


def test_one_variable_decides_for_both() -> None:
    folder = mounts("prometheus")["/etc/prometheus/alerts"]
    assert folder == mounts("tidemark")["/etc/tidemark"]
    assert {path.name for path in (STACK / "alerts_by").iterdir()} == {"tidemark", "prometheus"}


def test_prometheus_always_records_and_watches_tidemark() -> None:
    config = read_yaml(STACK / "prometheus.yml")
    assert config["rule_files"] == ["rules/*.yml", "alerts/*.yml"]
    assert mounts("prometheus")["/etc/prometheus/rules"] == "./dashboards/stack/rules"
    always = {path.name for path in (STACK / "rules").glob("*.yml")}
    assert always == {"tidemark_recording.yml", "tidemark_watching.yml"}


def test_tidemark_may_push_to_the_alertmanager_of_the_stack() -> None:
    alerting = tidemark_settings().alerting
    (receiver,) = alerting.receivers_by_name().values()
    assert isinstance(receiver, AlertmanagerReceiver)
    config = read_yaml(STACK / "prometheus.yml")
    (peers,) = config["alerting"]["alertmanagers"]
    (target,) = peers["static_configs"][0]["targets"]
    assert f"{receiver.endpoint.host}:{receiver.endpoint.port}" == target
    for address in ("172.18.0.2", "192.168.16.2", "10.89.0.2"):  # of Docker and Podman
        assert alerting.guard().check(address) == address


def test_alertmanager_mutes_by_alerts_that_exist() -> None:
    rules = read_yaml(STACK / "alertmanager.yml")["inhibit_rules"]
    text = " ".join(matcher for rule in rules for key in rule for matcher in rule[key])
    muted = set(re.findall(r"\w+", text)) - {"alertname"}
    assert muted <= {*ALERTS, *(rule.meta.rule_id for rule in EVERY)}


def test_grafana_finds_its_dashboards_where_they_are_mounted() -> None:
    folder = STACK / "grafana" / "provisioning"
    (provider,) = read_yaml(folder / "dashboards" / "tidemark.yml")["providers"]
    mounts = [volume.split(":") for volume in SERVICES["grafana"]["volumes"]]
    assert provider["options"]["path"] in [mount[1] for mount in mounts]


def test_grafana_shows_the_dashboards_that_are_generated_in_their_folder() -> None:
    provisioning = STACK / "grafana" / "provisioning" / "dashboards" / "tidemark.yml"
    (provider,) = read_yaml(provisioning)["providers"]
    mounts = dict(volume.split(":")[1::-1] for volume in SERVICES["grafana"]["volumes"])
    assert ROOT / mounts[provider["options"]["path"]] == RECORDED_FOLDER
    assert provider["folder"] == TITLE
    assert any(RECORDED_FOLDER.glob("*.json"))


def test_grafana_serves_the_pages_of_rules_where_dashboards_link_to_them() -> None:
    mounts = dict(volume.split(":")[1::-1] for volume in SERVICES["grafana"]["volumes"])
    assert mounts[f"/usr/share/grafana{RULE_PAGES_DEFAULT}"] == "./docs/rules"


def test_grafana_reads_the_database_with_a_role_that_sees_views_only() -> None:
    file = STACK / "grafana" / "provisioning" / "datasources" / "tidemark.yml"
    (source,) = [one for one in read_yaml(file)["datasources"] if one["name"] == "PostgreSQL"]
    assert source["user"] == "grafana"
    assert source["secureJsonData"]["password"] == "$__file{/run/secrets/reader_password}"  # noqa: S105 - where it is
    assert {"postgres_password", "database_url"}.isdisjoint(SERVICES["grafana"]["secrets"])
    script = "./dashboards/stack/postgres/reader.sh"
    (mounted,) = [one for one in SERVICES["postgres"]["volumes"] if one.startswith(script)]
    assert mounted == f"{script}:/docker-entrypoint-initdb.d/reader.sh:ro"
    assert "reader_password" in SERVICES["postgres"]["secrets"]
    text = (ROOT / script).read_text(encoding="utf-8")
    assert "CREATE ROLE grafana" in text
    assert (ROOT / script).stat().st_mode & 0o111, (
        "a file that cannot be executed is read by another shell"
    )


def test_grafana_has_data_sources_that_are_services_of_the_stack() -> None:
    folder = STACK / "grafana" / "provisioning"
    sources = read_yaml(folder / "datasources" / "tidemark.yml")["datasources"]
    hosts = {urlsplit(f"//{source['url'].removeprefix('http://')}").hostname for source in sources}
    assert hosts == {"prometheus", "postgres", "alertmanager"}
    assert len({source["uid"] for source in sources}) == len(sources)
