"""The version of Tidemark: what the command prints, and what brokers are told who asks."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
