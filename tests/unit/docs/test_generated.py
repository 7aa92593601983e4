"""What is generated for the pages is what the code says today: `make golden` writes it again."""

from __future__ import annotations

import json
from xml.dom import minidom

import click
import pytest

from rules.exceptions.page import exceptions_page
from rules.posture.client_config.finding import PAGE as CLIENT_CONFIG
from rules.posture.pages import with_client_settings
from rules.tool_output.page import tool_outputs_page
from service.api.page import api_page
from service.cli.main import tidemark
from service.cli.page import cli_pages
from tests.site.drawings.all_drawings import DRAWINGS
from tests.site.pages import DOCS
from tests.unit.service.api.given import OPENAPI_PAGE


def test_the_pages_of_the_commands_are_up_to_date() -> None:
    expected = cli_pages()
    written = {
        path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
        for path in (DOCS / "cli.md", *(DOCS / "cli").glob("*.md"))
    }
    assert written == expected, "run `make golden`"


def test_every_command_and_option_is_on_its_page() -> None:
    pages = cli_pages()
    context = click.Context(tidemark, info_name="tidemark")
    for name in tidemark.list_commands(context):
        command = tidemark.get_command(context, name)
        assert command is not None
        page = f"\n#{pages[f'cli/{name}.md']}"
        for each, path in _commands(command, f"tidemark {name}", context):
            assert f"\n## {path}\n" in page
            section = page.partition(f"\n## {path}\n")[2].partition("\n## ")[0]
            for option in each.get_params(click.Context(each, info_name=path)):
                if isinstance(option, click.Option) and not option.hidden:
                    assert option.opts[-1] in section


def test_the_pages_of_the_commands_do_not_depend_on_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TIDEMARK_SERVER", "http://elsewhere:1")
    assert cli_pages()["cli/alerts.md"] == (DOCS / "cli" / "alerts.md").read_text(encoding="utf-8")


def test_the_page_of_the_errors_of_clients_is_up_to_date() -> None:
    assert (DOCS / "exceptions.md").read_text(encoding="utf-8") == exceptions_page(), (
        "run `make golden`"
    )


def test_the_page_of_what_tools_print_is_up_to_date() -> None:
    assert (DOCS / "tool-outputs.md").read_text(encoding="utf-8") == tool_outputs_page(), (
        "run `make golden`"
    )


def test_the_page_of_clients_files_is_up_to_date() -> None:
    written = (DOCS / CLIENT_CONFIG).read_text(encoding="utf-8")
    assert written == with_client_settings(written), "run `make golden`"


def test_the_page_of_the_api_is_up_to_date() -> None:
    document = json.loads(OPENAPI_PAGE.read_text(encoding="utf-8"))
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    assert page == api_page(document), "run `make golden`"
    for path in document["paths"].values():
        for operation in path.values():
            assert f"\n### {operation['operationId']}\n" in page


def test_the_drawings_are_up_to_date_and_whole() -> None:
    for name, drawing in DRAWINGS.items():
        assert (DOCS / name).read_text(encoding="utf-8") == drawing, "run `make golden`"
        root = minidom.parseString(drawing).documentElement  # noqa: S318 - our own text
        assert root is not None
        assert root.getElementsByTagName("title")


def test_every_drawing_is_shown() -> None:
    texts = [page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md")]
    for name in DRAWINGS:
        assert any(f"({name.rpartition('/')[2]})" in text for text in texts), name


def _commands(
    command: click.Command, path: str, parent: click.Context
) -> list[tuple[click.Command, str]]:
    found = [(command, path)]
    if isinstance(command, click.Group):
        for name in command.list_commands(parent):
            child = command.get_command(parent, name)
            if child is not None and not child.hidden:
                found += _commands(child, f"{path} {name}", parent)
    return found
