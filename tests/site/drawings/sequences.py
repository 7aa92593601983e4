"""Why one line of a broker's log means nothing by itself: two histories that write it."""

from __future__ import annotations

from tests.site.drawings.canvas import Canvas

TAKEN, GONE, WAITING = "good", "bad", "open"


def draw_sequences() -> str:
    """Return a reordering that heals, and a loss, which the producer sees alike."""
    canvas = Canvas(
        780,
        400,
        "Twice a broker rejects sequence 6 because its last one is 2. Above, the same leader gets 3 to 5 a moment later: "
        "a reordering. Below, 3 to 5 were acknowledged by a leader that died: a loss",
    )
    canvas.text(24, 30, "Reordering: one leader epoch, nothing is missing", "bold")
    canvas.text(24, 78, "leader, epoch 7")
    _batches(canvas, 150, 58, (("0-2", TAKEN),))
    canvas.arrow((235, 73), (287, 73))
    canvas.named_box(290, 48, 200, "6-8 is rejected\nincoming 6, last sequence 2", "open")
    canvas.arrow((492, 73), (528, 73))
    _batches(canvas, 534, 58, (("0-2", TAKEN), ("3-5", TAKEN), ("6-8", TAKEN)))
    canvas.lines(
        150,
        122,
        "3-5 arrives, and 6-8 is sent again. The leader that appended 0-2 still leads:\n"
        "it has all that it ever acknowledged.",
        "small",
    )
    canvas.line((24, 158), (756, 158), "faint")
    canvas.text(24, 182, "Loss: the leader changed in between, and the new one lacks 3-5", "bold")
    canvas.text(24, 230, "leader, epoch 7")
    _batches(canvas, 150, 210, (("0-2", TAKEN), ("3-5", GONE)))
    canvas.text(330, 222, "0-5 acknowledged; the broker dies, and a", "small")
    canvas.text(330, 239, "replica that was not in sync is elected", "small")
    canvas.arrow((180, 242), (180, 275))
    canvas.text(24, 300, "leader, epoch 8")
    _batches(canvas, 150, 280, (("0-2", TAKEN),))
    canvas.arrow((235, 295), (287, 295))
    canvas.named_box(290, 270, 200, "6-8 is rejected\nincoming 6, last sequence 2", "open")
    canvas.arrow((492, 295), (528, 295))
    canvas.lines(
        534,
        285,
        "nobody sends 3-5 again: its producer\nhas an acknowledgement of it and\nbegins a new producer epoch",
        "small",
    )
    canvas.lines(
        150,
        350,
        "The line in the broker's log and the error of the producer are the same as above.\n"
        "What differs is the history of the partition: the epoch in which sequence 2 was appended.",
        "small",
    )
    return canvas.svg()


def _batches(canvas: Canvas, x: int, y: int, batches: tuple[tuple[str, str], ...]) -> None:
    for number, (words, style) in enumerate(batches):
        canvas.box(x + 70 * number, y, 66, 30, style)
        canvas.text(x + 70 * number + 33, y + 20, words, "", "middle")
