"""What `make docs` evens out between GitHub's Markdown and MkDocs'."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.site.hooks import (
    anchor_of,
    expanded,
    for_python_markdown,
    on_config,
    with_site_links,
)

URIS = {"README.md", "loss.md", "rules.md", "rules/a_rule.md", "CONTRIBUTING.md", "flow.svg"}


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("At 3 a.m.", "at-3-am"),
        ("What is known, and what is not", "what-is-known-and-what-is-not"),
        ("list_alerts", "list_alerts"),
        ("HTTP / API", "http--api"),
        ("Überblick", "überblick"),
    ],
)
def test_anchors_are_those_of_github(heading: str, anchor: str) -> None:
    assert anchor_of(heading) == anchor


@pytest.mark.parametrize(
    ("github", "site"),
    [
        ("text\n- a\n- b", "text\n\n- a\n- b"),
        ("- a\n  goes on\n  - inner", "- a\n    goes on\n    - inner"),
        (
            "1. a\n\n   ```sh mitigation\n   x\n   ```\n\nend",
            "1. a\n\n    ```sh\n    x\n    ```\n\nend",
        ),
        ("```text\n- no list\ntext\n- none\n```", "```text\n- no list\ntext\n- none\n```"),
        ("```sh diagnosis\nls\n```", "```sh\nls\n```"),
        ("- a\n\ntext", "- a\n\ntext"),
    ],
    ids=["blank line", "nested", "fence in an item", "fence", "words behind a language", "end"],
)
def test_lists_and_fences_are_written_as_python_markdown_reads_them(github: str, site: str) -> None:
    assert "\n".join(for_python_markdown(github)) == site


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("loss.md", "[a](rules/a_rule.md#x)", "[a](rules/a_rule.md#x)"),
        ("loss.md", "[a](../CONTRIBUTING.md)", "[a](CONTRIBUTING.md)"),
        ("rules/a_rule.md", "[a](../../CONTRIBUTING.md)", "[a](../CONTRIBUTING.md)"),
        ("CONTRIBUTING.md", "[a](docs/loss.md)", "[a](loss.md)"),
        ("loss.md", "[a](rules/)", "[a](rules.md)"),
        ("loss.md", "[a](../Makefile)", "[a]"),
        ("loss.md", "[a](gone.md)", "[a](gone.md)"),
        ("loss.md", "[a](https://x.example/y)", "[a](https://x.example/y)"),
        ("loss.md", "```\n[a](../Makefile)\n```", "```\n[a](../Makefile)\n```"),
    ],
)
def test_links_lead_to_what_the_site_has(page: str, text: str, expected: str) -> None:
    assert with_site_links(text, page, URIS) == expected


def test_a_folder_in_the_navigation_stands_for_its_pages(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    for name in ("b.md", "a.md", "c.txt"):
        (tmp_path / "rules" / name).touch()
    nav = [{"Rules": ["rules.md", "rules/*"]}, {"Nothing": ["none/*"]}, "loss.md"]
    assert expanded(nav, tmp_path) == [
        {"Rules": ["rules.md", "rules/a.md", "rules/b.md"]},
        "loss.md",
    ]


def test_the_site_makes_the_anchors_that_the_pages_are_checked_by(tmp_path: Path) -> None:
    config = {"mdx_configs": {"toc": {"permalink": True}}, "nav": ["x.md"], "docs_dir": tmp_path}
    made = on_config(config)["mdx_configs"]["toc"]
    assert made == {"permalink": True, "slugify": anchor_of}
    assert SimpleNamespace(**made).slugify("At 3 a.m.", "-") == "at-3-am"
