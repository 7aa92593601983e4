"""Where the API lies. Its clients read it too, so that this imports nothing."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "/api/v1"
