"""The scopes that the command line offers are those that a token can have."""

from __future__ import annotations

from service.cli.token import SCOPES
from service.storage.tokens.tokens import Scope


def test_the_command_line_knows_every_scope() -> None:
    assert set(SCOPES) == {scope.value for scope in Scope}
