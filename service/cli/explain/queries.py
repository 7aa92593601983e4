"""What a running Tidemark, or the brokers, know of the names in a text: its findings, losses and transactions.

A name of which nothing is known is not therefore in order: the reasons why there may be more are findings with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from rules.errors import TidemarkError
from rules.exceptions.collected import Subjects, subjects_of
from rules.facts.application_log import Names
from service.cli.options.kafka_options import asks_brokers, open_reader
from service.cli.server.report import Api, blind_spots, read_gaps
from service.cli.server.server_options import client_of
from service.terminal.words import time
from service.views.explained import Answers, Row

if TYPE_CHECKING:
    from service.cli.explain.reading import Text
    from service.cli.sequence.explaining import Reading

MOST: Final = 10  # names of one kind that are queried
SERVICE: Final = "service"
JUDGING: Final = ("committed_records_lost", "records_possibly_lost")
# Why nothing against a name is no proof that it is in order.
NO_PARTITION: Final = "it sees no such partition"
NO_GROUP: Final = "it sees no such group"
NO_NAMES: Final = "it names no partition, transactional id or group to query"
ONLY_OPEN: Final = "of transactional ids it lists open transactions alone"


def ask(text: Text, options: Mapping[str, Any]) -> Answers:
    """Query those that options name about the names in a text; what fails is an error among the answers."""
    answers, subjects = Answers(), subjects_of(text.collected, _names_of_tools(text))
    queries: list[Callable[[], None]] = []
    if text.brokers is not None:
        brokers = text.brokers
        queries.append(lambda: _ask_about_sequences(brokers, options, answers))
    if subjects.is_any and options["server"] is not None:
        queries.append(lambda: _ask_service(options, subjects, answers))
    elif options["server"] is not None and text.brokers is None and text.incidents:
        answers.rows.append(_answer(SERVICE, "the text", "UNKNOWN", NO_NAMES))
    if subjects.is_any and asks_brokers(options):
        queries.append(lambda: _ask_brokers(options, subjects, answers))
    for query in queries:
        try:
            query()
        except TidemarkError as error:
            answers.errors.append(str(error))
    answers.errors = list(dict.fromkeys(answers.errors))
    return answers


def _names_of_tools(text: Text) -> Iterator[Names]:
    """Yield the names in outputs of Kafka's tools that are not in order."""
    for row in text.tools:
        if row["verdict"] != "OK":
            for item in row["items"]:
                yield Names(**{name: item[name] for name in NAMES})


NAMES: Final = ("topic", "partition", "group", "transactional_id")


def _ask_about_sequences(brokers: Reading, options: Mapping[str, Any], answers: Answers) -> None:
    from service.cli.sequence import asking, verdicts  # noqa: PLC0415 - heavy, and seldom needed

    own = verdicts.Answers()
    try:
        asking.ask(brokers, options, own)
    finally:
        answers.errors += own.errors
        answers.sequences = verdicts.add_verdicts(brokers.events, own.rows)


def _ask_service(options: Mapping[str, Any], subjects: Subjects, answers: Answers) -> None:
    with client_of(options) as api:
        for row in ask_service(api, subjects):
            answers.rows.append(row)


def ask_service(api: Api, subjects: Subjects) -> Iterator[Row]:
    """Yield what a running Tidemark knows of each name."""
    status = api.get("status")
    unseen = list(blind_spots(status, read_gaps(api, status), JUDGING))
    for topic, partition in subjects.partitions[:MOST]:
        not_seen = unseen if _has_partition(api, topic, partition) else (*unseen, NO_PARTITION)
        yield from _known(f"{topic}-{partition}", _of_partition(api, topic, partition), not_seen)
    is_named = bool(subjects.transactional_ids or subjects.groups)
    findings = list(_open_findings(api)) if is_named else []
    for id_ in subjects.transactional_ids[:MOST]:
        yield from _known(id_, _of_transactional_id(api, findings, id_), (*unseen, ONLY_OPEN))
    for group in subjects.groups[:MOST]:
        seen = api.find(f"groups/{quote(group, safe='')}") is not None
        not_seen = unseen if seen else (*unseen, NO_GROUP)
        yield from _known(group, _about(findings, {"group": group}), not_seen)


def _known(about: str, verdicts: Iterable[tuple[str, str]], unseen: Sequence[str]) -> Iterator[Row]:
    findings = list(verdicts)
    for verdict, summary in findings:
        yield _answer(SERVICE, about, verdict, summary)
    if not findings:
        why = "; ".join(unseen)
        summary = f"nothing is known against it, and not all is seen: {why}" if why else "nothing is known against it"  # fmt: skip
        yield _answer(SERVICE, about, "UNKNOWN" if why else "OK", summary)


def _answer(by: str, about: str, verdict: str, summary: str) -> Row:
    return {"by": by, "about": about, "verdict": verdict, "summary": summary}


def _of_partition(api: Api, topic: str, partition: int) -> Iterator[tuple[str, str]]:
    labels = {"topic": topic, "partition": str(partition)}
    yield from _about(_open_findings(api, topic=topic), labels)


def _has_partition(api: Api, topic: str, partition: int) -> bool:
    pages = api.pages("partitions", topic=topic)
    return any((row["topic"], row["partition"]) == (topic, partition) for page in pages for row in page["items"])  # fmt: skip


def _of_transactional_id(api: Api, findings: Iterable[Row], id_: str) -> Iterator[tuple[str, str]]:
    """Yield the open transactions of an id, and the findings about it, as who fenced its producers."""
    rows = api.get("transactions", transactional_id=id_)["items"]
    yield from (_transaction(row) for row in rows if row.get("transactional_id") == id_)
    yield from _about(findings, {"transactional_id": id_})


def _open_findings(api: Api, **query: str) -> Iterator[Row]:
    for page in api.pages("findings", state="open", **query):
        yield from page["items"]


def _about(findings: Iterable[Row], labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the findings whose labels have these values."""
    for row in findings:
        own = row.get("labels") or {}
        if all(str(own.get(name)) == value for name, value in labels.items()):
            reason = f" ({row['reason']})" if row.get("reason") else ""
            since = f" since {time(row['since'])}" if row.get("since") else ""
            yield str(row.get("verdict")), f"{row.get('rule')}{reason}{since}: {row.get('summary')}"


def _transaction(row: Row) -> tuple[str, str]:
    step = f"; {row['next_step']}" if row.get("next_step") else ""
    return str(row.get("class")), f"its transaction is {row.get('class')}, state {row.get('state')}{step}"  # fmt: skip


def _ask_brokers(options: Mapping[str, Any], subjects: Subjects, answers: Answers) -> None:
    from collectors.wire.failure import Failure  # noqa: PLC0415 - Kafka clients
    from service.observe.cluster_reader import Scope  # noqa: PLC0415 - same
    from service.views.explained_known import snapshot_answers, transaction_answer  # noqa: PLC0415 - same

    with open_reader(options) as (reader, _settings):
        for id_ in subjects.transactional_ids[:MOST]:
            described = reader.describe(id_)
            if isinstance(described, Failure):
                answers.errors.append(f"transactional id {id_!r}: {described.why}")
            else:
                state = None if described is None else str(described.state)
                answers.rows.append(transaction_answer(id_, state))
        if subjects.partitions or subjects.groups:
            answers.rows += snapshot_answers(reader.read(Scope()), subjects)
