"""SCRAM users that every sandbox has. Their passwords guard nothing but a loopback port."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A SCRAM user of the sandbox."""

    name: str
    password: str


ADMIN = User(name="admin", password="admin-sandbox-only")  # noqa: S106 - loopback only, documented
OBSERVER = User(name="observer", password="observer-sandbox-only")  # noqa: S106 - same
ITERATIONS = 4096  # the least that SCRAM allows: quick logins matter here, not cracking cost
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256")


def format_arguments() -> list[str]:
    """Return StorageTool's arguments that create the users in a fresh cluster."""
    return [
        argument
        for user in (ADMIN, OBSERVER)
        for mechanism in MECHANISMS
        for argument in ("--add-scram", f"{mechanism}=[name={user.name},password={user.password}]")
    ]
