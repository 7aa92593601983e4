"""Checks of this machine: data directory, open files, clock, Java and Spark. Nothing is written."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rules.errors import SettingsError
from service.cli.config import require_usable
from service.runtime.data_directory import has_holder
from service.runtime.java import OLDEST, java_of, major_of
from service.runtime.kernel_clock import is_synchronised
from service.runtime.open_files import FILES
from service.views.doctor import Area, Check, CheckState
from spark.home import spark_error

if TYPE_CHECKING:
    from service.settings import Settings

GIB: Final = 1024**3
LEAST_FREE: Final = 2 * GIB  # history, a database and Spark's scratch files share it


def machine_checks(settings: Settings) -> Iterator[Check]:
    """Yield the checks of this machine, as a service would use it."""
    yield data_directory(settings.service.data_directory())
    yield open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    yield clock(is_synchronised())
    if settings.nightly.enabled:
        yield _spark()
        yield _java()


def data_directory(folder: Path) -> Check:
    """Check whether a service could use the folder; a running one on it is no problem."""
    subject = "data directory"
    try:
        require_usable(str(folder))
    except SettingsError as exc:
        return _check(subject, CheckState.MISSING, "cannot be used", str(exc))
    there = next(part for part in (folder, *folder.parents) if part.exists())
    free = shutil.disk_usage(there).free
    use = {True: ", in use", False: "", None: ""}[has_holder(folder)]
    state = CheckState.OK if free >= LEAST_FREE else CheckState.WARN
    new = "" if there == folder else ", will be made"
    return _check(subject, state, f"{free / GIB:.1f} GiB free{use}{new}", str(folder))


def open_files(hard: int) -> Check:
    """Check the hard limit of open files, up to which a service raises its own."""
    subject = "limit of open files"
    if hard == resource.RLIM_INFINITY or hard >= FILES:
        shown = "none" if hard == resource.RLIM_INFINITY else f"{hard:,}"
        return _check(subject, CheckState.OK, shown)
    detail = (
        f"A service wants {FILES:,}, half of them for HTTP: raise it (ulimit -Hn, LimitNOFILE)."
    )
    return _check(subject, CheckState.WARN, f"{hard:,}", detail)


def clock(synchronised: bool | None) -> Check:  # noqa: FBT001 - its three values are the input
    """Check whether the kernel synchronises this machine's clock."""
    subject = "clock of this machine"
    if synchronised:
        return _check(subject, CheckState.OK, "synchronised", area=Area.CLOCK)
    summary = "not known" if synchronised is None else "not synchronised"
    detail = (
        "The kernel says so (adjtimex); in a container or a virtual machine the host may synchronise it all "
        "the same. The clocks above are compared with this one."
    )
    return _check(subject, CheckState.WARN, summary, detail, area=Area.CLOCK)


def _spark() -> Check:
    error = spark_error()
    if error is None:
        return _check("Spark", CheckState.OK, "installed")
    return _check("Spark", CheckState.WARN, "not installed: no baselines", error)


def _java() -> Check:
    java = java_of(os.environ)
    major = None if java is None else major_of(java)
    if java is None or major is None:
        detail = f"Spark needs Java {OLDEST} or newer: install it, or set JAVA_HOME."
        summary = "not installed" if java is None else "does not run"
        return _check("Java", CheckState.WARN, summary, detail)
    state = CheckState.OK if major >= OLDEST else CheckState.WARN
    needs = "" if state is CheckState.OK else f"Spark needs Java {OLDEST} or newer. "
    return _check("Java", state, str(major), f"{needs}{java}")


def _check(
    subject: str,
    state: CheckState,
    summary: str,
    detail: str | None = None,
    *,
    area: Area = Area.MACHINE,
) -> Check:
    return Check(area=area, subject=subject, state=state, summary=summary, detail=detail)
