"""A real Alertmanager on this machine, its API, and its own command line tool."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import httpx2

from service.runtime.clock import utc_now, wait_until
from tests import loopback

INSTALL: Final = "Alertmanager is missing: apt-get install prometheus-alertmanager"
SECONDS: Final = 120.0


def program(name: str) -> str:
    """Return where one of Alertmanager's programs is."""
    found = shutil.which(name)
    assert found is not None, INSTALL
    return found


class Alertmanager:
    """A server that runs."""

    def __init__(self, address: str) -> None:
        self.address = address

    def alerts(self) -> list[dict[str, Any]]:
        """Return what it holds as going on."""
        with loopback.client() as client:
            answer = client.get(f"{self.address}/api/v2/alerts")
        assert answer.status_code == 200, answer.text
        return list(answer.json())

    def fingerprints(self) -> set[str]:
        return {one["fingerprint"] for one in self.alerts()}

    def silence(self, label: str, value: str) -> str:
        """Silence what has a label; return the id of the silence."""
        matcher = {"name": label, "value": value, "isRegex": False, "isEqual": True}
        now = utc_now()
        wanted = {
            "matchers": [matcher],
            "startsAt": now.isoformat(),
            "endsAt": (now + timedelta(hours=1)).isoformat(),
            "createdBy": "on-call",
            "comment": "planned work",
        }
        with loopback.client() as client:
            answer = client.post(f"{self.address}/api/v2/silences", json=wanted)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["silenceID"])

    def expire(self, silence: str) -> None:
        """End a silence."""
        with loopback.client() as client:
            answer = client.delete(f"{self.address}/api/v2/silence/{silence}")
        assert answer.status_code == 200, answer.text

    def amtool(self, *arguments: str) -> Any:
        command = [program("amtool"), f"--alertmanager.url={self.address}", "-o", "json"]
        done = subprocess.run([*command, *arguments], capture_output=True, check=True, timeout=120)
        return json.loads(done.stdout)

    def is_ready(self) -> bool:
        with contextlib.suppress(httpx2.TransportError), loopback.client() as client:
            return bool(client.get(f"{self.address}/-/ready").status_code == 200)
        return False


@contextlib.contextmanager
def alertmanager(
    folder: Path, webhook: str, inhibitions: Sequence[Mapping[str, object]] = ()
) -> Iterator[Alertmanager]:
    """Run a server that tells a webhook of groups, at once and then every second."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    route = {
        "receiver": "team",
        "group_by": ["alertname", "cluster"],
        "group_wait": "1s",
        "group_interval": "1s",
    }
    hook = {"url": webhook, "send_resolved": True}
    config = {
        "route": route,
        "receivers": [{"name": "team", "webhook_configs": [hook]}],
        "inhibit_rules": list(inhibitions),
    }
    path, log = folder / "alertmanager.yml", folder / "alertmanager.log"
    path.write_text(json.dumps(config), encoding="utf-8")  # YAML reads JSON
    command = [
        *(program("prometheus-alertmanager"), f"--config.file={path}"),
        *(f"--storage.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"),
        *("--cluster.listen-address=", "--web.external-url=http://am.example.org/"),
        "--web.route-prefix=/",
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=folder)
    try:
        made = Alertmanager(address)
        assert wait_until(made.is_ready, timeout_seconds=SECONDS), log.read_text("utf-8")
        yield made
    finally:
        process.terminate()
        process.wait(SECONDS)
