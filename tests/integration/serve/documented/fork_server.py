"""A process that has imported every command, and runs each `tidemark` in a copy of itself.

A new Python that imports a command takes a second of a processor, and pages have hundreds of commands.
Here a line of a page is run by a shell as it stands, with its pipes and files: the program `tidemark`
that the shell finds (`CLIENT`) passes its arguments, folder, environment and standard streams through a
socket, and ends with the exit code that comes back.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.integration.serve.served import ROOT, plain_environment

START_SECONDS: Final = 180.0
SOCKET: Final = "FORK_SERVER_SOCKET"  # of the client's environment
CLIENT: Final = f"""#!{sys.executable} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(os.environ["{SOCKET}"])
call = {{"arguments": [*PREFIX, *sys.argv[1:]], "folder": os.getcwd(), "environment": dict(os.environ)}}
socket.send_fds(server, [b"."], [0, 1, 2])
server.sendall(json.dumps(call).encode())
server.shutdown(socket.SHUT_WR)
sys.exit(int(server.recv(16) or 255))
"""


def client(*prefix: str) -> str:
    """Return a program that runs `tidemark` with these arguments before its own ones."""
    return CLIENT.replace("PREFIX", repr(list(prefix)))


@contextmanager
def fork_server(folder: Path) -> Iterator[Path]:
    """Run the server for the length of a block; yield the path of its socket."""
    path = folder / "forks"
    command = [sys.executable, "-m", "tests.integration.serve.documented.fork_server", str(path)]
    with subprocess.Popen(
        command, cwd=ROOT, env=plain_environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", "the fork server did not start"
            yield path
        finally:
            process.kill()


def serve(path: str) -> None:
    """Answer calls until this process is killed, each in a process of its own."""
    _import_everything()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a child
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(64)
        print("ready", flush=True)  # noqa: T201 - for whoever started this process
        while True:
            connection, _ = server.accept()
            if os.fork() == 0:
                server.close()
                _answer(connection)
            connection.close()


def _import_everything() -> None:
    import collectors  # noqa: PLC0415 - in the server's own process alone
    import service  # noqa: PLC0415 - same

    for package in (service, collectors):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".launcher" not in module.name and not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def _answer(connection: socket.socket) -> None:
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    content = b"".join(iter(lambda: connection.recv(65_536), b""))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    code = 255
    try:
        code = _run(json.loads(content))
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - of a child that is no test
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        connection.sendall(str(code).encode())
        os._exit(0)


def _run(call: dict[str, Any]) -> int:
    from service.cli.main import run  # noqa: PLC0415 - imported by now

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.argv = ["tidemark", *call["arguments"]]
    return run(call["arguments"])


if __name__ == "__main__":
    serve(sys.argv[1])
