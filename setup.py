"""What is installed, and under which names; everything else is in pyproject.toml.

A wheel has the one package `tidemark`, and the folders of the repository below it, so that names like `rules`
or `spark` meet no others in site-packages. An editable install, as `make setup` makes it, finds the folders where they are.
docs/decisions/0010-one-name-in-site-packages.md says why.
"""

from __future__ import annotations

import sys

from setuptools import find_packages, setup

LAUNCHER = "service.launcher"  # becomes the package `tidemark`
TREE = "tidemark._tree"
FOLDERS = ("service", "collectors", "rules", "dashboards", "spark", "migrations")
DATA = {
    "service.sandbox.cluster": ["locks/*.lock", "*.xml", "*.yaml", "*.properties"],
    "spark": ["conf/*.properties"],
    "dashboards": ["generated*/*.json"],
    "migrations": ["*.mako"],
}
RUNBOOKS = "docs.runbooks"  # no code: pages that `tidemark runbook` reads, from the same place in a repository and a wheel

packages = find_packages(include=[name for folder in FOLDERS for name in (folder, f"{folder}.*")])
is_editable = "editable_wheel" in sys.argv  # as the build backend calls this file
prefix = "" if is_editable else f"{TREE}."
if not is_editable:
    packages.append(RUNBOOKS)
    DATA[RUNBOOKS] = ["*.md"]
setup(
    packages=["tidemark", *(prefix + name for name in packages if name != LAUNCHER or is_editable)],
    package_dir={"tidemark": LAUNCHER.replace(".", "/")} | ({} if is_editable else {TREE: "."}),
    package_data={prefix + name: patterns for name, patterns in DATA.items()},
)
