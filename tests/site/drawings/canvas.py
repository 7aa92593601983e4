"""Text that draws: boxes, lines, arrows and words of an SVG, placed by hand in pixels.

Every drawing has a background of its own and its colours for light and dark, so that it can be read
on GitHub and on the site whatever the reader's setting is. The same calls give the same text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import escape

FONT: Final = "-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
STYLE: Final = f"""\
  <style>
    text {{ font: 13px {FONT}; fill: #1f2328; }}
    .bold {{ font-weight: 600; }}
    .small {{ font-size: 12px; fill: #57606a; }}
    .page {{ fill: #ffffff; stroke: #d0d7de; }}
    .line {{ stroke: #57606a; fill: none; }}
    .tip {{ fill: #57606a; }}
    .plain {{ fill: #f6f8fa; stroke: #8c959f; }}
    .good {{ fill: #dafbe1; stroke: #1a7f37; }}
    .open {{ fill: #fff8c5; stroke: #9a6700; }}
    .bad {{ fill: #ffebe9; stroke: #cf222e; }}
    .marker {{ fill: #ddf4ff; stroke: #0969da; }}
    .faint {{ fill: none; stroke: #8c959f; stroke-dasharray: 4 3; }}
    @media (prefers-color-scheme: dark) {{
      text {{ fill: #e6edf3; }}
      .small {{ fill: #9da7b3; }}
      .page {{ fill: #0d1117; stroke: #30363d; }}
      .line {{ stroke: #9da7b3; }}
      .tip {{ fill: #9da7b3; }}
      .plain {{ fill: #161b22; stroke: #6e7681; }}
      .good {{ fill: #12261e; stroke: #3fb950; }}
      .open {{ fill: #272115; stroke: #d29922; }}
      .bad {{ fill: #25171c; stroke: #f85149; }}
      .marker {{ fill: #111d2e; stroke: #58a6ff; }}
      .faint {{ stroke: #6e7681; }}
    }}
  </style>
  <defs>
    <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">
      <path class="tip" d="M0 0 8 4 0 8z"/>
    </marker>
  </defs>
"""
CELL: Final = 40  # pixels, of one offset


@dataclass(slots=True)
class Canvas:
    """A drawing of `width` by `height` pixels, which `title` describes for who cannot see it."""

    width: int
    height: int
    title: str
    parts: list[str] = field(default_factory=list)

    def box(self, x: int, y: int, width: int, height: int, style: str = "plain") -> None:
        """Draw a rectangle."""
        self.parts.append(
            f'<rect class="{style}" x="{x}" y="{y}" width="{width}" height="{height}" rx="3"/>'
        )

    def text(self, x: int, y: int, words: str, style: str = "", anchor: str = "start") -> None:
        """Write words; `y` is their base line."""
        name = f' class="{style}"' if style else ""
        place = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text{name} x="{x}" y="{y}"{place}>{escape(words)}</text>')

    def lines(self, x: int, y: int, words: str, style: str = "", anchor: str = "start") -> None:
        """Write several lines, 17 pixels apart."""
        for number, line in enumerate(words.split("\n")):
            self.text(x, y + 17 * number, line, style, anchor)

    def line(self, start: tuple[int, int], end: tuple[int, int], style: str = "line") -> None:
        """Draw a line."""
        (x1, y1), (x2, y2) = start, end
        self.parts.append(f'<path class="{style}" d="M{x1} {y1} {x2} {y2}"/>')

    def arrow(self, *points: tuple[int, int], both: bool = False) -> None:
        """Draw an arrow along points, with a second tip at its start if `both`."""
        path = " ".join(f"{x} {y}" for x, y in points)
        start = ' marker-start="url(#tip)"' if both else ""
        self.parts.append(f'<path class="line" d="M{path}" marker-end="url(#tip)"{start}/>')

    def named_box(self, x: int, y: int, width: int, words: str, style: str = "plain") -> None:
        """Draw a box around centred lines; the first one is its name."""
        rows = words.split("\n")
        self.box(x, y, width, 16 + 17 * len(rows), style)
        for number, row in enumerate(rows):
            self.text(
                x + width // 2, y + 20 + 17 * number, row, "small" if number else "bold", "middle"
            )

    def cells(self, x: int, y: int, first: int, styles: str) -> None:
        """Draw a log: one cell per offset from `first` on, by a letter each (see `LETTERS`)."""
        for number, letter in enumerate(styles):
            left = x + CELL * number
            self.box(left, y, CELL, 30, LETTERS[letter])
            words = {"M": "C", "A": "A"}.get(letter, "" if letter == "-" else str(first + number))
            self.text(left + CELL // 2, y + 20, words, "bold" if letter in "MA" else "", "middle")

    def pointer(self, x: int, top: int, words: str, bottom: int) -> None:
        """Write words above a line down to a boundary between two cells."""
        self.text(x, top, words, "bold", "middle")
        self.arrow((x, top + 6), (x, bottom))

    def span(self, left: int, right: int, y: int, words: str) -> None:
        """Draw a measure between two places, with its words below."""
        self.line((left, y - 5), (left, y + 5))
        self.line((right, y - 5), (right, y + 5))
        self.arrow((left, y), (right, y), both=True)
        self.text((left + right) // 2, y + 17, words, "small", "middle")

    def svg(self) -> str:
        """Return the drawing."""
        body = "\n".join(f"  {part}" for part in self.parts)
        size = (
            f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        )
        page = f'<rect class="page" x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="6"/>'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n'
            f"  <title>{escape(self.title)}</title>\n{STYLE}  {page}\n{body}\n</svg>\n"
        )


LETTERS: Final = {
    "d": "good",  # decided and replicated
    "o": "open",  # of an open transaction, or behind it
    "u": "plain",  # not replicated
    "x": "bad",  # gone
    "M": "marker",  # a commit marker
    "A": "marker",  # an abort marker
    "-": "faint",  # nothing
}
