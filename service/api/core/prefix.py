"""The path prefix of the API; its clients read it too, so this imports nothing."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "/api/v1"
