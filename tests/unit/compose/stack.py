"""The Compose file and the Dockerfile, read as they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from service.settings import Settings, read_settings
from service.settings.sources import FILE_SUFFIX, PREFIX

ROOT: Final = Path(__file__).parents[3]
STACK: Final = ROOT / "dashboards" / "stack"
EXACT_TAG: Final = re.compile(r"v?\d+\.\d+(\.\d+)?(-[a-z0-9]+)*")
INTERPOLATION: Final = re.compile(r"\$\{[A-Z_]+:-(?P<default>[^}]*)\}")
BROKERS: Final = ("broker-1", "broker-2", "broker-3")


def read_yaml(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


COMPOSE: Final[Mapping[str, Any]] = read_yaml(ROOT / "docker-compose.yml")
SERVICES: Final[Mapping[str, Any]] = COMPOSE["services"]


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


def mounts(name: str) -> dict[str, str]:
    """Return what a service has mounted, by its place in the container, as Compose's file has it."""
    volumes = [volume.removesuffix(":ro") for volume in SERVICES[name]["volumes"]]
    return {place: source for source, _, place in (volume.rpartition(":") for volume in volumes)}


def instructions() -> list[str]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def final_stage() -> list[str]:
    last = max(i for i, line in enumerate(instructions()) if line.startswith("FROM "))
    return instructions()[last:]


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
