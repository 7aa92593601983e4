"""The password of the embedded server's superuser: who can read it in the data directory may connect.

A server that trusts its socket lets in everybody who has its user id, which as root it shares with others
(`nobody`). Files of versions that did are closed before their server starts again.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Final

from service.storage.database.programs import Programs

SUPERUSER: Final = "postgres"  # the database's, not the machine's
PASSWORD_FILE: Final = "postgres.password"  # noqa: S105 - in the data directory, mode 0600
RULES_FILE: Final = "pg_hba.conf"
TRUST: Final = re.compile(
    r"^([ \t]*(?:local|host\w*)[ \t].*[ \t])trust([ \t]*(?:#.*)?)$", re.MULTILINE
)


def read_password(directory: Path) -> str | None:
    """Return the password of a data directory; None: its server needs none, or there is no server.

    Raises:
        OSError: it cannot be read.
    """
    try:
        return (directory / PASSWORD_FILE).read_text(encoding="ascii").strip() or None
    except FileNotFoundError:
        return None


def require_password(programs: Programs, data: Path, directory: Path) -> None:
    """Have the stopped server of `data` ask for the password of its data directory; make one if needed.

    What is interrupted is done again by the next call: the rules are closed last.

    Raises:
        StoreError: PostgreSQL does not take it.
        OSError: a file cannot be read or written.
    """
    rules = _read(data / RULES_FILE)
    closed = without_trust(rules)
    password = read_password(directory)
    if password is not None and closed == rules:
        return
    file = directory / PASSWORD_FILE
    new = file.with_name(f"{PASSWORD_FILE}.new")
    password = password or secrets.token_urlsafe(32)
    _write(new, password, mode=0o600)
    _set_password(programs, data, password)
    new.replace(file)
    if closed != rules:
        _replace(data / RULES_FILE, closed)


def without_trust(rules: str) -> str:
    """Return the rules of pg_hba.conf with a password wherever they trusted."""
    return TRUST.sub(r"\1scram-sha-256\2", rules)


def _set_password(programs: Programs, data: Path, password: str) -> None:
    """Set it without a server, so that there is no time at which somebody else could connect."""
    settings = {
        "password_encryption": "scram-sha-256",
        "exit_on_error": "on",
        "log_statement": "none",
        "log_min_error_statement": "panic",  # the statement has the password
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    statement = f"ALTER ROLE {SUPERUSER} PASSWORD '{password}'\n"
    arguments = ["--single", "-D", str(data), *options, "postgres"]
    programs.run("postgres", arguments, data=data, script=statement)


def _replace(path: Path, text: str) -> None:
    """Write a file of the server's anew, for its owner."""
    facts = path.stat()
    new = path.with_name(f"{path.name}.new")
    _write(new, text, mode=facts.st_mode & 0o777)
    os.chown(new, facts.st_uid, facts.st_gid)
    new.replace(path)


def _read(path: Path) -> str:
    """Read a file in a folder that is the server's: as root, follow no link that somebody laid there."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="latin-1") as file:
        return file.read()


def _write(path: Path, text: str, *, mode: int) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="latin-1") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
