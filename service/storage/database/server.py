"""An embedded PostgreSQL server in a data directory, for one process at a time.

It listens only on a Unix socket, in a folder that belongs to its user alone, and asks for the password of
the data directory. No name of a folder reaches a shell.

A process that dies leaves the server running. The lock ends with the process, so that the next one
stops that server cleanly and starts its own; a server that died recovers from its log. A process that
finds the lock taken may use the holder's server through its socket (`running_url`), and never stops it.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import signal
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Final

import psutil
from sqlalchemy import URL

from rules.errors import StoreError
from service.runtime.clock import wait_until
from service.runtime.data_directory import make_folder
from service.storage.database.programs import (
    find_programs,
    may_pass,
    require_name,
    require_passage,
)
from service.storage.database.superuser import SUPERUSER, read_password, require_password

START_SECONDS: Final = 60  # recovery after a crash included
STOP_SECONDS: Final = 30
# Buffers are kept for good once they were used. What is read again fits into them, and the kernel caches
# files as well.
MEMORY: Final = "-c shared_buffers=32MB -c autovacuum_work_mem=4MB"
MAX_SOCKET_PATH: Final = 100  # a Unix socket's path ends at 107 bytes
SOCKET_NAME: Final = ".s.PGSQL.5432"
SHORT_NAME: Final = "tidemark-12345678"  # as long as a name of mkdtemp's
FOLDER_LINE: Final = 4  # of postmaster.pid, from 0: where the socket is
STATUS_LINE: Final = 7  # of postmaster.pid, from 0


class DirectoryInUseError(StoreError):
    """Another process holds the lock of the data directory."""


class EmbeddedServer:
    """One PostgreSQL server in `directory`; made by `start`, ended by `stop`."""

    def __init__(self, directory: Path, binaries: Path | None, lock: IO[str]) -> None:
        self.directory = directory
        self._lock = lock
        self._data = directory / "postgres"
        self._programs = find_programs(self._data, binaries)
        self._sockets = _socket_folder(self._data, self._programs.user)
        if self._sockets != self._data:
            _give(self._sockets, self._programs.user)

    @classmethod
    def start(cls, directory: Path, binaries: Path | None = None) -> EmbeddedServer:
        """Lock the directory, create the database files if there are none, and start.

        Raises:
            StoreError: the directory cannot be written, is in use, of another major version or closed
                to the server's user, or the server does not start.
        """
        directory = directory.resolve()
        lock = _lock_directory(directory)
        with ExitStack() as undo:
            undo.callback(lock.close)
            server = cls(directory, binaries, lock)
            undo.callback(server._release)
            server.resume()
            undo.pop_all()
        return server

    @property
    def url(self) -> URL:
        """Return where the server listens, with the password."""
        return _url(self._sockets, read_password(self.directory))

    def resume(self) -> None:
        """Start the server, in place of one that a killed process left running.

        Raises:
            StoreError: as `start`.
        """
        try:
            self._start()
        except OSError as exc:
            message = f"data directory {self.directory}: {_reason(exc)}"
            raise StoreError(message, retryable=False) from exc

    def ensure_running(self) -> bool:
        """Restart the server if it died; return whether that was needed.

        A running server is left alone, also one that does not answer. After `stop` nothing is
        started: the directory may be another process's by then.

        Raises:
            StoreError: it does not start.
        """
        if self._lock.closed or self._running() is not None:
            return False
        self.resume()
        return True

    def _start(self) -> None:
        require_passage(self._programs.user, self.directory)
        if not self._data.exists():
            self._initialise()
        self._check_version()
        self.pause()
        require_password(self._programs, self._data, self.directory)
        # These words go through a shell. The server works in its own folder, whose name is not among them.
        sockets = "." if self._sockets == self._data else shlex.quote(str(self._sockets))
        words = ["start", "-w", "-t", str(START_SECONDS), "-D", ".", "-l", "server.log"]
        options = f"-k {sockets} -c listen_addresses= {MEMORY}"
        self._programs.run("pg_ctl", [*words, "-o", options], data=self._data, folder=self._data)

    def pause(self) -> None:
        """Stop the server if it runs and keep the lock.

        It ends sessions and writes what it has, also where its user could not reach its folder any more.

        Raises:
            StoreError: it does not end in time.
        """
        process = self._running()
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGINT)
        if not wait_until(lambda: self._running() is None, timeout_seconds=STOP_SECONDS):
            message = f"PostgreSQL in {self.directory} did not end in {STOP_SECONDS} s"
            raise StoreError(message, retryable=True)

    def stop(self) -> None:
        """Stop the server and unlock the directory; a second call does nothing."""
        if self._lock.closed:
            return
        try:
            self.pause()
        finally:
            self._release()

    def _release(self) -> None:
        if self._sockets != self._data:
            shutil.rmtree(self._sockets, ignore_errors=True)
        self._lock.close()

    def _initialise(self) -> None:
        """Create the files aside and rename the directory: an incomplete one is never used."""
        require_name(self._programs.user)
        new_data = self._data.with_name("postgres.new")
        shutil.rmtree(new_data, ignore_errors=True)
        new_data.mkdir(mode=0o700)
        _give(new_data, self._programs.user)
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "-U", SUPERUSER]
        self._programs.run("initdb", [*options, "-D", str(new_data)], data=new_data)
        require_password(self._programs, new_data, self.directory)
        new_data.rename(self._data)

    def _check_version(self) -> None:
        data_version = (self._data / "PG_VERSION").read_text(encoding="ascii").strip()
        printed = self._programs.run("postgres", ["--version"], data=self._data)
        answer = printed.split()  # postgres (PostgreSQL) 18.4 ...
        ours = answer[2].split(".")[0]
        if data_version != ours:
            raise StoreError(
                f"data directory {self.directory} was made by PostgreSQL {data_version}, "
                f"and this is PostgreSQL {ours}: move it with pg_upgrade or start in an empty one",
                retryable=False,
            )

    def _running(self) -> int | None:
        """Return the process id of our server, None if it does not run; remove what a killed one left.

        The id in its file may be another program's by now, or a zombie's where nothing reaps orphans
        (a container without an init). PostgreSQL would take either for a living server.
        """
        pid_file = self._data / "postmaster.pid"
        try:
            process = pid_file.read_text(encoding="utf-8").partition("\n")[0]
        except FileNotFoundError:
            return None
        if process in self._workers():
            return int(process)
        if not wait_until(lambda: not self._workers(), timeout_seconds=STOP_SECONDS):
            raise StoreError(
                f"data directory {self.directory}: processes of a killed PostgreSQL still use it",
                retryable=True,
            )
        for left in (pid_file, self._sockets / f"{SOCKET_NAME}.lock"):
            left.unlink(missing_ok=True)
        return None

    def _workers(self) -> set[str]:
        """Return the ids of all processes in the data directory, where all of PostgreSQL's work."""
        processes = psutil.process_iter(["cwd"])
        return {str(process.pid) for process in processes if process.info["cwd"] == str(self._data)}


def has_files(directory: Path) -> bool:
    """Return whether a data directory has database files."""
    return (directory / "postgres" / "PG_VERSION").exists()


def running_url(directory: Path) -> URL | None:
    """Return the URL in the status file of a directory's server, None unless the server is ready.

    A killed server leaves its status file: only connecting shows whether it still listens.
    """
    data = directory.resolve() / "postgres"
    try:
        said = (data / "postmaster.pid").read_text(encoding="utf-8")
        password = read_password(directory)
    except FileNotFoundError:
        return None
    except OSError as exc:
        message = f"data directory {directory}: {_reason(exc)}"
        raise StoreError(message, retryable=False) from exc
    lines = [line.strip() for line in said.splitlines()]
    is_ready = len(lines) > STATUS_LINE and lines[STATUS_LINE] == "ready"
    return _url(data / lines[FOLDER_LINE], password) if is_ready else None


def _lock_directory(directory: Path) -> IO[str]:
    try:
        make_folder(directory)
        lock = (directory / "postgres.lock").open("a", encoding="ascii")
    except OSError as exc:
        raise StoreError(f"data directory {directory}: {_reason(exc)}", retryable=False) from exc
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        lock.close()
        raise DirectoryInUseError(
            f"data directory {directory} is in use by another Tidemark process", retryable=False
        ) from exc
    return lock


def _url(sockets: Path, password: str | None) -> URL:
    return URL.create(
        "postgresql+psycopg",
        username=SUPERUSER,
        password=password,
        database="postgres",
        query={"host": str(sockets)},
    )


def _reason(exc: OSError) -> str:
    return (exc.strerror or str(exc)).lower()


def _socket_folder(data: Path, user: int | None) -> Path:
    """Return the data folder, or a new private one if no client could name a socket there."""
    if _holds_socket(data):
        return data
    short = Path(tempfile.gettempdir())
    if not (_holds_socket(short / SHORT_NAME) and may_pass(user, short)):
        short = Path("/tmp")  # noqa: S108 - below it, a folder that nobody can have made before
    return Path(tempfile.mkdtemp(prefix="tidemark-", dir=short))  # 0700


def _holds_socket(folder: Path) -> bool:
    """Return whether the path of a socket is short enough, and no list of hosts to a client."""
    return len(os.fsencode(folder / SOCKET_NAME)) <= MAX_SOCKET_PATH and "," not in str(folder)


def _give(path: Path, user: int | None) -> None:
    if user is not None:
        os.chown(path, user, -1)
