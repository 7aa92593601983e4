"""Whether Spark is installed, and where: known without importing it."""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path
from typing import Final

from rules.errors import NotInstalledError

EXTRA: Final = 'extra == "nightly"'  # of the distribution `tidemark`: pyproject.toml


def find_spark_home() -> Path:
    """Return the folder of PySpark.

    Raises:
        NotInstalledError: Tidemark was installed without its extra.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        # Not by our own name, under which a public index has another project.
        raise NotInstalledError(
            "Spark is not installed, which is the extra tidemark[nightly]: "
            f"pip install '{_requirement()}' (docs/install.md)"
        )
    return Path(spec.origin).parent


def spark_error() -> str | None:
    """Return why Spark cannot be used, one line; None: it is installed."""
    try:
        find_spark_home()
    except NotInstalledError as exc:
        return str(exc)
    return None


def _requirement() -> str:
    """Return what the extra needs, with its version."""
    try:
        required = metadata.requires("tidemark") or ()
    except metadata.PackageNotFoundError:  # run from the sources
        required = ()
    words = (line.partition(";") for line in required)
    return next((name.strip() for name, _, marker in words if EXTRA in marker), "pyspark")
