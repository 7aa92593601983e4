"""How Tidemark works: the flow of a round, and the way of a notification."""

from __future__ import annotations

from typing import Final

from tests.site.drawings.canvas import Canvas

LANES: Final = {"round": 85, "alerting": 295, "PostgreSQL": 505, "delivery": 715, "receiver": 925}
MESSAGES: Final = (
    ("round", "alerting", "open findings, changes, now"),
    ("alerting", "round", "alerts, groups, outgoing"),
    ("round", "PostgreSQL", "one transaction: findings, checkpoint, alerts, outbox"),
    ("PostgreSQL", "alerting", "silences, for the next round"),
    ("delivery", "PostgreSQL", "claim, lease, commit"),
    ("delivery", "receiver", "POST, webhook-id of the row"),
    ("receiver", "delivery", "an answer, or none"),
    ("delivery", "PostgreSQL", "delivered, or when to retry"),
)


def draw_flow() -> str:
    """Return the flow of a round, from brokers to receivers."""
    canvas = Canvas(
        860,
        500,
        "Brokers, logs and metrics are read by collectors into a Snapshot; rules judge it; rounds store findings in PostgreSQL, "
        "from whose outbox they are delivered; history feeds the baselines of Spark, and what the API and the command line "
        "say of a past time",
    )
    canvas.box(196, 40, 640, 120, "faint")
    canvas.text(206, 32, "a round: everything once, then one transaction", "small")
    canvas.named_box(20, 66, 140, "sources\nKafka brokers,\ntheir logs,\nmetrics of clients")
    canvas.named_box(212, 74, 110, "collectors\nfacts, gaps")
    canvas.named_box(362, 74, 130, "service/observe\nSnapshot, memory")
    canvas.named_box(532, 74, 130, "rules\nverdicts, questions")
    canvas.named_box(702, 74, 120, "service/rounds\nfindings, alerts")
    for start, end in ((160, 209), (322, 359), (492, 529), (662, 699)):
        canvas.arrow((start, 99), (end, 99))
    canvas.arrow((597, 124), (597, 146), (267, 146), (267, 127))
    canvas.text(430, 141, "questions for the next round", "small", "middle")
    canvas.named_box(500, 216, 170, "service/storage\nPostgreSQL", "marker")
    canvas.arrow((745, 124), (745, 190), (640, 190), (640, 213))
    canvas.arrow((535, 216), (535, 180), (725, 180), (725, 127))
    canvas.text(430, 199, "silences, acknowledgements", "small", "middle")
    canvas.named_box(270, 216, 150, "service/delivery\nfrom the outbox")
    canvas.arrow((500, 241), (423, 241))
    canvas.named_box(20, 216, 180, "receivers\nwebhooks, Alertmanager,\nSlack, PagerDuty")
    canvas.arrow((270, 241), (203, 241))
    canvas.arrow((790, 124), (790, 330), (743, 330))
    canvas.named_box(600, 305, 140, "service/history\nParquet, exact offsets")
    canvas.named_box(360, 305, 150, "service/jobs\nspark: baselines")
    canvas.arrow((600, 330), (513, 330))
    canvas.arrow((480, 305), (560, 269))
    canvas.named_box(20, 330, 180, "service/metrics\n/metrics")
    canvas.named_box(250, 371, 110, "service/api\nHTTP")
    canvas.arrow((110, 379), (110, 396), (247, 396))
    canvas.arrow((810, 124), (810, 396), (363, 396))
    canvas.text(560, 412, "the published state of the last round", "small", "middle")
    canvas.arrow((640, 355), (640, 381), (363, 381))
    canvas.text(500, 375, "api/past: what it was at a time", "small", "middle")
    canvas.named_box(205, 444, 200, "service/cli\nstatus, past, incident, ...")
    canvas.arrow((305, 421), (305, 441))
    return canvas.svg()


def draw_notification() -> str:
    """Return who does what in turn between a finding and an answer of a receiver."""
    height = 100 + 44 * len(MESSAGES)
    canvas = Canvas(
        1010,
        height,
        "From a finding to a receiver: " + "; ".join(words for _, _, words in MESSAGES),
    )
    for name, x in LANES.items():
        canvas.named_box(x - 55, 20, 110, name)
        canvas.line((x, 53), (x, height - 20), "faint")
    for number, (sender, to, words) in enumerate(MESSAGES):
        y = 90 + 44 * number
        canvas.arrow((LANES[sender], y), (LANES[to], y))
        canvas.text((LANES[sender] + LANES[to]) // 2, y - 7, words, "small", "middle")
    return canvas.svg()
