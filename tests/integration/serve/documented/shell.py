"""A person's shell: the lines of a page, run in order in one bash, with their exit codes and outputs."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.integration.serve.documented.fork_server import SOCKET, client
from tests.integration.serve.served import ROOT

PAGE_SECONDS: Final = 300.0
# Programs that are not here, or would change this machine: what stands in for them, and prints what is needed.
STAND_INS: Final[Mapping[str, str]] = {
    "make": f'exec /usr/bin/make --dry-run --directory {shlex.quote(str(ROOT))} "$@" >/dev/null',
    "kubectl": 'exec cat "$WORKSPACE/var/log/kafka/server.log"',  # kubectl logs
    "pass": 'exec cat "$HOME/prod.token"',
}
NO_JQ: Final = "exec cat >/dev/null"
NEEDED: Final[Mapping[str, str]] = {  # programs of the pages, by the package that has each
    "curl": "curl",
    "openssl": "openssl",
    "promtool": "prometheus",
    "psql": "postgresql",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A line that was run."""

    line: str
    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A shell whose programs, home and environment are a test's own."""

    workspace: (
        Path  # `/etc`, `/run`, `/var` of the pages, and `cwd`, of which each page gets a copy
    )
    environment: Mapping[str, str]

    @classmethod
    def prepared(
        cls,
        workspace: Path,
        forks: Path,
        kafka_tools: Sequence[str],
        environment: Mapping[str, str],
    ) -> Shell:
        """Return a shell that finds `tidemark`, Kafka's tools and the stand-ins first."""
        missing = [package for name, package in NEEDED.items() if shutil.which(name) is None]
        assert missing == [], f"missing: apt-get install {' '.join(missing)}"
        programs = workspace / "bin"
        programs.mkdir()
        texts = {name: f"#!/bin/sh\n{text}\n" for name, text in STAND_INS.items()}
        texts |= {name: client("sandbox", "tool", name) for name in kafka_tools}
        texts["tidemark"] = client()
        if shutil.which("jq") is None:
            texts["jq"] = f"#!/bin/sh\n{NO_JQ}\n"
        for name, text in texts.items():
            (programs / name).write_text(text, encoding="utf-8")
            (programs / name).chmod(0o755)
        own = {
            "PATH": f"{programs}:{environment['PATH']}",
            "WORKSPACE": str(workspace),
            SOCKET: str(forks),
            "PYTHONPATH": str(ROOT),  # of processes that a command starts
        }
        return cls(workspace=workspace, environment={**environment, **own})

    def run(self, lines: Sequence[str], page: str) -> list[Ran]:
        """Run lines in order, whatever the ones before end with, in a fresh copy of the folder `cwd`."""
        name = f"{page.replace('/', '+').replace(' ', '_')}."
        folder = Path(tempfile.mkdtemp(dir=self.workspace / "pages", prefix=name))
        shutil.copytree(self.workspace / "cwd", folder, dirs_exist_ok=True)
        outputs = folder.with_name(f"{folder.name}.outputs")
        outputs.mkdir()
        script = ["set -o pipefail"]
        for number, line in enumerate(lines):
            base = shlex.quote(str(outputs / str(number)))
            script += [f"{{ {line}\n}} </dev/null >{base}.out 2>{base}.err; echo $? >{base}.code"]
        done = subprocess.run(
            ["/bin/bash", "-c", "\n".join(script)],
            cwd=folder, env=self.environment, capture_output=True, text=True,
            check=False, timeout=PAGE_SECONDS,
        )  # fmt: skip
        assert done.stderr == "", done.stderr
        return [
            Ran(
                line=line,
                code=int((outputs / f"{number}.code").read_text()),
                out=(outputs / f"{number}.out").read_text(errors="replace"),
                err=(outputs / f"{number}.err").read_text(errors="replace"),
            )
            for number, line in enumerate(lines)
        ]
