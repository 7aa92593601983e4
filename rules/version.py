"""The version of Tidemark: the command prints it, and brokers get it as the client's software version."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
