"""How far clocks are taken to agree where a time of one is compared with a time of another."""

from __future__ import annotations

from typing import Final

# Microseconds by which a broker's clock, as seen in its log lines, may differ from ours: machines
# synchronised by NTP are well within.
CLOCKS_AGREE_US: Final = 2_000_000
