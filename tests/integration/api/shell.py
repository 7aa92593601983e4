"""A person who types commands that ask a service."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from service.cli.main import run
from service.terminal.exit_codes import ExitCode
from tests.integration.api.given import Api


@dataclass
class Shell:
    """A person who types."""

    api: Api
    server: str
    capsys: pytest.CaptureFixture[str]

    def __call__(self, line: str, *words: str, code: ExitCode = ExitCode.OK) -> str:
        """Return what is printed, with what goes to stderr behind it."""
        typed = [*line.split(), *words, "--server", self.server]
        found = run(typed)
        told = self.capsys.readouterr()
        assert found == code, f"{typed}: {told.out}{told.err}"
        return told.out + told.err

    def json(self, line: str, *words: str) -> Any:
        return json.loads(self(line, *words, "-o", "json"))
