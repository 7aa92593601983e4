"""How far clocks are taken to agree where a time of one is compared with a time of another."""

from __future__ import annotations

from typing import Final

# Microseconds by which the clock of a broker, as its log lines tell it, may be off ours: machines that
# keep time by NTP are well within.
CLOCKS_AGREE_US: Final = 2_000_000
