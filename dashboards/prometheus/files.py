"""The rule files that there are, and how they are written to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dashboards.prometheus.alerting import ALERTING
from dashboards.prometheus.recording import RECORDING
from dashboards.prometheus.rule import RuleFile
from dashboards.prometheus.watching import WATCHING
from dashboards.prometheus.yaml_text import render

FILES: Final = (RECORDING, ALERTING, WATCHING)
# In the committed files; `tidemark dashboards rules --docs-url` writes files with yours.
DOCS_URL: Final = "https://wiki.example/tidemark"

STACK: Final = Path(__file__).parents[1] / "stack"
# What the Compose stack mounts, by file: alerts on Kafka only where Prometheus delivers them.
STACK_FOLDERS: Final = {
    RECORDING.name: STACK / "rules",
    WATCHING.name: STACK / "rules",
    ALERTING.name: STACK / "alerts_by" / "prometheus",
}


def write_stack_files() -> None:
    """Write the files that are committed for the Compose stack."""
    for file in FILES:
        write_rule_file(file, STACK_FOLDERS[file.name])


def write_rule_file(file: RuleFile, folder: Path, docs_url: str = DOCS_URL) -> Path:
    """Write a rule file into a folder, which is made where it is missing, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file.name
    path.write_text(render(file, docs_url), encoding="utf-8")
    return path
