"""Writes Prometheus' rule files into a folder: `python -m dashboards.prometheus FOLDER`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dashboards.prometheus.files import DOCS_URL, FILES, write_rule_file


def main(arguments: Sequence[str]) -> None:
    """Write all files and print their paths."""
    parser = argparse.ArgumentParser(
        prog="python -m dashboards.prometheus", description="Write Tidemark's rules for Prometheus."
    )
    parser.add_argument("folder", type=Path, help="where the files are written")
    parser.add_argument(
        "--docs-url",
        default=DOCS_URL,
        help="address at which Tidemark's folder docs/ is served; runbook_url is below it",
    )
    options = parser.parse_args(arguments)
    for file in FILES:
        path = write_rule_file(file, options.folder, options.docs_url.rstrip("/"))
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
