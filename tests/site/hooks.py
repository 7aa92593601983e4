"""What MkDocs needs so that pages written for GitHub become a site: `make docs`.

The pages stay plain Markdown as GitHub reads it (CommonMark). Python-Markdown, which MkDocs uses, wants a
blank line before a list and four spaces for what belongs to one, makes other anchors of headings, and
knows only pages below `docs/`. Here, and nowhere in the pages, that is evened out. MkDocs loads this file
by its path and imports nothing else of ours; `tests/unit/docs/` shares the anchors and the navigation.

Source: https://www.mkdocs.org/user-guide/configuration/#hooks, GitHub's anchors by trial.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
OUTSIDE: Final = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
)  # of the root, served beside the pages
FENCE: Final = re.compile(r"^( *)(```+|~~~+)[ ]*([\w+-]*)(.*)$")
ITEM: Final = re.compile(r"^( *)((?:[-*+]|\d+[.)]) +)(?=\S)")
LINK: Final = re.compile(r"(\]\()([^()\s]+)(\))")
NOT_IN_ANCHOR: Final = re.compile(r"[^\w\- ]")
WIDTH: Final = 4  # columns by which Python-Markdown indents what belongs to an item


def on_config(config: Any) -> Any:
    """Make anchors as GitHub does, and name in the navigation each page of a folder."""
    config["mdx_configs"].setdefault("toc", {})["slugify"] = anchor_of
    config["nav"] = expanded(config["nav"], Path(config["docs_dir"]))
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root that others link to."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - in the environment of `make docs` alone

    for name in OUTSIDE:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Return the text of a page as Python-Markdown reads it."""
    del config
    uris = {file.src_uri for file in files}
    return "\n".join(for_python_markdown(with_site_links(markdown, page.file.src_uri, uris)))


def anchor_of(heading: str, separator: str = "-") -> str:
    """Return the anchor that GitHub gives a heading, of its text without markup."""
    return NOT_IN_ANCHOR.sub("", heading.strip().lower()).replace(" ", separator)


def expanded(nav: Any, folder: Path) -> Any:
    """Return a navigation in which `folder/*` stands for each of its pages, by name."""
    if isinstance(nav, str) and nav.endswith("/*"):
        pages = sorted((folder / nav.removesuffix("*")).glob("*.md"))
        return [page.relative_to(folder).as_posix() for page in pages]
    if isinstance(nav, dict):
        sections = {title: expanded(entry, folder) for title, entry in nav.items()}
        return {title: entries for title, entries in sections.items() if entries} or []
    if isinstance(nav, list):
        entries: list[Any] = []
        for entry in nav:
            pages_of_entry = expanded(entry, folder)
            entries.extend(pages_of_entry if isinstance(pages_of_entry, list) else [pages_of_entry])
        return entries
    return nav


def with_site_links(markdown: str, page: str, uris: set[str]) -> str:
    """Return a page whose relative links lead to what the site has; others become their text."""
    here = posixpath.dirname(posixpath.join("docs", page) if page not in OUTSIDE else page)

    def to_site(match: re.Match[str]) -> str:
        address, hash_, anchor = match[2].partition("#")
        if not address or ":" in address:
            return match[0]
        path = posixpath.normpath(posixpath.join(here, address))
        target = _in_site(path, uris)
        if target is None and (ROOT / path).exists():
            return "]"  # a reference without a definition: the brackets' text alone
        if target is None:
            return match[0]  # leads nowhere: MkDocs reports it
        link = posixpath.relpath(target, posixpath.dirname(page) or ".")
        return f"{match[1]}{link}{hash_}{anchor}{match[3]}"

    return "".join(
        line if is_code else LINK.sub(to_site, line)
        for line, is_code in fenced(markdown.splitlines(keepends=True))
    )


def _in_site(target: str, uris: set[str]) -> str | None:
    """Return the page or file of the site for a path in the repository, None if it has none."""
    path = target.removeprefix("docs/")
    if target == "README.md":
        path = "README.md"
    choices = (path, f"{path}.md", f"{path}/README.md")
    return next((choice for choice in choices if choice in uris), None)


def fenced(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it belongs to a fenced block, its fences included."""
    fence: str | None = None
    for line in lines:
        match = FENCE.match(line.rstrip("\n"))
        if fence is None and match:
            fence = match[2]
            yield line, True
        elif fence is not None:
            yield line, True
            is_end = match and match[2].startswith(fence) and not match[3] and not match[4].strip()
            fence = None if is_end else fence
        else:
            yield line, False


def for_python_markdown(markdown: str) -> Iterator[str]:
    """Yield the lines with blank lines before lists, and four columns for what an item contains.

    What stands behind a fence's language is left out: Python-Markdown takes nothing else for a fence.
    """
    offsets: list[int] = []  # of the contents of the items that are open, outermost first
    previous = ""
    for line, is_code in fenced(markdown.splitlines()):
        indent = len(line) - len(line.lstrip(" "))
        item = None if is_code else ITEM.match(line)
        if line.strip() and not (is_code and not FENCE.match(line)):
            while offsets and indent < offsets[-1] and (item or not previous.strip()):
                offsets.pop()
        if item:
            if previous.strip() and not offsets and not ITEM.match(previous):
                yield ""
            text = " " * (WIDTH * len(offsets)) + line.lstrip(" ")
            offsets.append(len(item[0]))
        else:
            inside = min(indent, offsets[-1]) if offsets else 0
            text = " " * (WIDTH * len(offsets) if inside else 0) + line[inside:]
        fence = FENCE.match(text) if is_code else None
        yield f"{fence[1]}{fence[2]}{fence[3]}" if fence else text
        previous = line
