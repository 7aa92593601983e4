"""How a transaction ends on a partition, and how it never does."""

from __future__ import annotations

from tests.site.drawings.canvas import CELL, Canvas

LEFT = 230
STATES = (
    (60, "open", "Ongoing", "good", "ddddoooo", 4),
    (150, "decided", "PrepareCommit", "open", "ddddoooo", 4),
    (240, "ended", "CompleteCommit", "good", "ddddddddM", 9),
)


def draw_transaction() -> str:
    """Return the three states of a transaction at its coordinator and on a partition."""
    canvas = Canvas(
        830,
        330,
        "A transaction from offset 4 on: while its coordinator has it as Ongoing or PrepareCommit the last stable offset is 4; "
        "the commit marker at offset 8 moves it to 9",
    )
    canvas.text(24, 32, "transaction coordinator", "bold")
    canvas.text(LEFT + 20, 32, "partition orders-0", "bold")
    for y, words, state, style, cells, lso in STATES:
        canvas.named_box(24, y - 6, 150, f"{state}\n{words}", style)
        canvas.cells(LEFT + 20, y + 6, 0, cells)
        x = LEFT + 20 + CELL * lso
        canvas.text(x, y - 4, f"LSO {lso}", "small", "middle")
        canvas.line((x, y), (x, y + 42))
    canvas.lines(655, 74, "read_committed readers\nwait at offset 4", "small")
    canvas.lines(655, 164, "the decision is final; the\nmarker is being written", "small")
    canvas.lines(655, 254, "readers get 4 to 7 and\nskip the marker, offset 8", "small")
    canvas.arrow((89, 108), (89, 141))
    canvas.arrow((89, 198), (89, 231))
    canvas.text(98, 128, "EndTxn", "small")
    canvas.text(98, 218, "WriteTxnMarkers", "small")
    canvas.text(
        24,
        314,
        "A group that has read everything has committed 8 or 9: a lag of 1 here is the marker alone.",
        "small",
    )
    return canvas.svg()


def draw_hanging() -> str:
    """Return a partition with an open transaction for which no coordinator will write a marker."""
    canvas = Canvas(
        830,
        250,
        "The partition has producer 4711 open from offset 4 on, while the coordinator has the producer as Empty without any "
        "partition: no marker will ever come, and the last stable offset stays at 4",
    )
    canvas.text(24, 32, "transaction coordinator", "bold")
    canvas.text(LEFT + 60, 32, "partition orders-0, by its leader (DescribeProducers)", "bold")
    canvas.named_box(24, 54, 170, "Empty\nproducer 4711\nno partition", "bad")
    canvas.cells(LEFT + 60, 70, 0, "ddddoooooooo")
    x = LEFT + 60 + CELL * 4
    canvas.text(x, 60, "LSO 4, for good", "small", "middle")
    canvas.line((x, 64), (x, 106))
    canvas.span(x, x + CELL * 3, 122, "open")
    canvas.span(x + CELL * 3, x + CELL * 8, 122, "records of others, withheld")
    canvas.lines(
        24,
        180,
        "The coordinator aborts what it has as Ongoing when the timeout is over. Of this one it knows nothing,\n"
        "and no timeout applies. Only a person ends it, by WriteTxnMarkers (kafka-transactions.sh abort).\n"
        "Requests are not atomic, so that this has to be seen twice, 0.9 s apart at least.",
        "small",
    )
    return canvas.svg()
