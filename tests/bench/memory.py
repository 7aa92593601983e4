"""How much memory a process holds: it alone, without the processes that it started."""

from __future__ import annotations

from pathlib import Path


def weighed(process: int | str = "self") -> str:
    """Say how much memory a process holds now (VmRSS), and held at most (VmHWM)."""
    lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    now, most = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return f"VmRSS {now:5.0f} MiB, VmHWM {most:5.0f} MiB"
