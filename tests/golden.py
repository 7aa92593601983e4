"""Writes the generated pages again: `make golden`. Review the result as a diff."""

from __future__ import annotations

from pathlib import Path

from dashboards.build import BOARDS, write_files
from dashboards.pages import page_name as page_of_board
from dashboards.pages import with_panels
from dashboards.prometheus.files import write_stack_files
from dashboards.prometheus.page import alerts_page
from rules.catalogue.all_rules import EVERY
from rules.exceptions.page import exceptions_page
from rules.facts.permissions import with_permissions
from rules.pages import page
from rules.posture.all_checks import CHECKS
from rules.posture.client_config.finding import PAGE as CLIENT_CONFIG
from rules.posture.pages import check_page, with_checks, with_client_settings
from rules.tool_output.page import tool_outputs_page
from service.cli.page import cli_pages
from service.metrics.dropin import EXPORTERS
from service.metrics.dropin.documentation import page_name, with_names
from service.metrics.page import metrics_page
from service.sandbox.commands.documents import OF_SANDBOX
from service.schemas.schemas import FORMS, schema_pages
from service.settings.page import settings_page
from tests.site.drawings.all_drawings import DRAWINGS
from tests.unit.service.alerting.notifications.given import write_notification_pages
from tests.unit.service.api.given import write_openapi_pages

DOCS = Path(__file__).parents[1] / "docs"
RULE_PAGES = DOCS / "rules"


def write_rule_pages() -> None:
    """Write one page per rule."""
    RULE_PAGES.mkdir(parents=True, exist_ok=True)
    for rule in EVERY:
        text = page(rule.meta, rule.text, [str(reason) for reason in rule.reasons])
        (RULE_PAGES / f"{rule.meta.rule_id}.md").write_text(text, encoding="utf-8")


def write_posture_pages() -> None:
    """Write one page per check of posture, and their list into its page; the prose stays."""
    folder = DOCS / "posture"
    folder.mkdir(exist_ok=True)
    for check in CHECKS:
        (folder / f"{check.meta.check_id}.md").write_text(check_page(check), encoding="utf-8")
    path = DOCS / "posture.md"
    path.write_text(with_checks(path.read_text(encoding="utf-8")), encoding="utf-8")


def write_single_pages() -> None:
    """Write the pages that describe a closed set as a whole."""
    pages = {
        "exceptions.md": exceptions_page(),
        "metrics.md": metrics_page(),
        "settings.md": settings_page(),
        "tool-outputs.md": tool_outputs_page(),
        CLIENT_CONFIG: with_client_settings((DOCS / CLIENT_CONFIG).read_text(encoding="utf-8")),
        "prometheus-alerts.md": alerts_page(),
        **schema_pages({**FORMS, **OF_SANDBOX}),
        **DRAWINGS,
        **cli_pages(),
    }
    for folder in ("cli", "schemas"):
        (DOCS / folder).mkdir(exist_ok=True)
    for name, text in pages.items():
        (DOCS / name).write_text(text, encoding="utf-8")


def write_names_of_exporters() -> None:
    """Write the names into the pages about moving from an exporter; their prose stays."""
    for exporter in EXPORTERS:
        path = DOCS / page_name(exporter)
        path.write_text(with_names(path.read_text(encoding="utf-8"), exporter), encoding="utf-8")


def write_panels_of_dashboards() -> None:
    """Write what the panels show into the pages of the dashboards; their prose stays."""
    for board in BOARDS:
        path = DOCS / "dashboards" / page_of_board(board)
        path.write_text(with_panels(path.read_text(encoding="utf-8"), board), encoding="utf-8")


def write_permissions() -> None:
    """Write the table of permissions into its page; the prose stays."""
    path = DOCS / "permissions.md"
    path.write_text(with_permissions(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_rule_pages()
    write_permissions()
    write_posture_pages()
    write_single_pages()
    write_stack_files()
    write_names_of_exporters()
    write_openapi_pages()
    write_notification_pages()
    write_files()
    write_panels_of_dashboards()
