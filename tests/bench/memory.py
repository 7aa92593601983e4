"""How much memory a process holds: it alone, without the processes that it started."""

from __future__ import annotations

from pathlib import Path


def weighed(process: int | str = "self") -> str:
    """Say how much memory a process holds now (VmRSS), and held at most (VmHWM)."""
    now, most = weights(process)
    return f"VmRSS {now:5.0f} MiB, VmHWM {most:5.0f} MiB"


def weights(process: int | str = "self") -> tuple[float, float]:
    """Return how much memory a process holds now, and held at most, in MiB."""
    lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    now, most = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


def forget_peak() -> None:
    """Have this process's VmHWM begin anew from what it holds now. Source: proc(5), clear_refs."""
    Path("/proc/self/clear_refs").write_text("5", "ascii")
