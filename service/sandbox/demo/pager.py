"""The pager of the demo: a receiver of notifications, in a process of its own."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rules.errors import SandboxError
from service.runtime import clock
from service.runtime.children import module_command
from service.sandbox.cluster import processes
from service.sandbox.cluster.state import ProcessId

NAME: Final = "pager"
FAILURES: Final = 1  # requests that it does not take at first, to show that they come again
START_SECONDS: Final = 120.0  # a busy machine; an idle one needs less than ten
ADDRESS: Final = re.compile(r"(?m)^Receiving at (http://\S+);")

Row = Mapping[str, Any]


def _new_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode("ascii")


@dataclass(slots=True)
class Pager:
    """Records what it gets below a folder."""

    folder: Path
    secret: str = field(default_factory=_new_secret, repr=False)
    address: str = ""
    process: ProcessId | None = None

    @property
    def record(self) -> Path:
        """Return the file of what it got."""
        return self.folder / "pager.jsonl"

    def start(self) -> None:
        """Start it and wait until it listens."""
        log = self.folder / "pager.log"
        options = ("--fail", str(FAILURES), "--secret", self.secret, "--record", str(self.record))
        command = module_command("service", "sandbox", "receive", *options)
        self.process = processes.spawn(command, output=log)
        if not clock.wait_until(lambda: bool(_address_in(log)), timeout_seconds=START_SECONDS):
            raise SandboxError(f"the receiver did not start; {log} says why")
        self.address = _address_in(log)

    def got(self) -> Sequence[Row]:
        """Return the requests in the order of their arrival."""
        with contextlib.suppress(FileNotFoundError):
            lines = self.record.read_text(encoding="utf-8").splitlines(keepends=True)
            return [json.loads(line) for line in lines if line.endswith("\n")]
        return []

    def settings(self) -> str:
        """Return the settings of a Tidemark that sends here; JSON's strings are TOML's.

        Short group intervals, because the demo is short. `send_info` because receivers get no alerts of
        severity info unless they set it.
        """
        return f"""
[alerting]
default_receiver = {json.dumps(NAME)}
group_wait_seconds = 1
group_interval_seconds = 2
private_ranges = "127.0.0.1/32"

[[alerting.receivers]]
name = {json.dumps(NAME)}
url = {json.dumps(self.address)}
signing_secrets = {json.dumps(self.secret)}
send_info = true
"""


def _address_in(log: Path) -> str:
    with contextlib.suppress(OSError):
        match = ADDRESS.search(log.read_text(encoding="utf-8", errors="replace"))
        return "" if match is None else match[1]
    return ""
