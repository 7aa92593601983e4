"""What retention removes on a real database, and what it must leave."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import pytest
from sqlalchemy import Engine, event, text

from rules.errors import StoreError
from rules.verdict import Verdict
from service.runtime.clock import wait_until
from service.storage.jobs import retention
from service.storage.jobs.retention import Kind, remove
from service.storage.rounds.inbox import StoredInbox
from service.storage.rounds.rounds import store_rounds
from tests.factories import NOON
from tests.integration.storage.given import Story, list_findings, list_transitions
from tests.integration.storage.given_lines import add, delivery, offsets, read

pytestmark = pytest.mark.integration

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
LIMIT: Final = NOON + timedelta(days=1)
OLD, NEW = NOON, LIMIT + timedelta(hours=1)
MICROSECOND: Final = timedelta(microseconds=1)
LONG: Final = timedelta(hours=1)


def remove_older(engine: Engine, before: datetime) -> int:
    """Remove what was found, as far as it is older than a time; return how many rows went."""
    kinds = (Kind.TRANSITIONS, Kind.FINDINGS, Kind.LOG_LINES)
    return sum(remove(engine, "default", dict.fromkeys(kinds, before), NEW).values())


def told(engine: Engine, story: Story) -> dict[str, tuple[bool, list[datetime]]]:
    """Return what is kept by topic: whether it is open, and the times of its transitions."""
    return {
        found.labels["topic"]: (
            found.ended_at is None,
            [one.at for one in list_transitions(engine, found.id)],
        )
        for found in list_findings(engine, story.cluster, only_open=False)
    }


def later(seconds: int, begin: datetime = OLD) -> datetime:
    return begin + timedelta(seconds=seconds)


def test_old_transitions_and_ended_findings_go_and_the_rest_stays(database: Engine) -> None:
    story = Story(database)
    names = ("ended", "open", "reopened", "ended lately")
    rounds = [
        story.round(dict.fromkeys(names, BREACH), at=OLD),
        story.round({**dict.fromkeys(names, BREACH), "ended": OK, "reopened": OK}, at=later(1)),
        story.round({"open": BREACH, "ended lately": OK, "reopened": BREACH}, at=NEW),
        story.round({"open": UNKNOWN, "reopened": BREACH, "new": BREACH}, at=later(1, NEW)),
    ]
    store_rounds(database, rounds)
    assert remove_older(database, LIMIT) == 7
    assert told(database, story) == {
        "open": (True, [later(1, NEW)]),
        "reopened": (True, [NEW]),
        "ended lately": (False, [NEW]),
        "new": (True, [later(1, NEW)]),
    }


def test_an_open_finding_stays_when_all_its_transitions_go(database: Engine) -> None:
    story = Story(database)
    store_rounds(database, [story.round({"open": BREACH}, at=OLD)])
    assert remove_older(database, LIMIT) == 1
    assert told(database, story) == {"open": (True, [])}
    store_rounds(database, [story.round({"open": OK}, at=NEW)])
    assert told(database, story) == {"open": (False, [NEW])}


def test_what_is_exactly_as_old_as_the_limit_stays(database: Engine) -> None:
    story = Story(database)
    store_rounds(database, [story.round({"a": BREACH}, at=OLD), story.round({"a": OK}, at=LIMIT)])
    assert remove_older(database, LIMIT) == 1
    assert told(database, story) == {"a": (False, [LIMIT])}
    assert remove_older(database, LIMIT + MICROSECOND) == 2
    assert told(database, story) == {}


def test_log_lines_that_nobody_reads_go_too(database: Engine) -> None:
    inbox = StoredInbox(lambda: database, "a cluster that nobody watches any more")
    add(inbox, delivery(1, received_at=OLD), delivery(2, received_at=NEW))
    assert remove_older(database, LIMIT) == 1
    assert offsets(read(inbox)) == [2]


def test_nothing_old_is_nothing_removed(database: Engine) -> None:
    assert remove_older(database, LIMIT) == 0


def test_more_than_a_batch_goes_in_several(database: Engine, story_of: MakeStory) -> None:
    count = retention.BATCH + 1
    story = story_of(count)
    statements: list[str] = []
    event.listen(
        database,
        "after_cursor_execute",
        lambda _link, _cursor, statement, *_: statements.append(statement),
    )
    assert remove_older(database, LIMIT) == 3 * count
    deleted = [found[1] for one in statements if (found := re.search(r"DELETE FROM (\w+)", one))]
    assert deleted == 3 * ["transition"] + 2 * ["finding"] + ["log_inbox"]
    assert told(database, story) == {}


def test_a_finding_that_opens_again_while_it_is_removed_stays(database: Engine) -> None:
    story = Story(database)
    store_rounds(
        database, [story.round({"a": BREACH}, at=OLD), story.round({"a": OK}, at=later(1))]
    )
    removed: list[int] = []
    removing = threading.Thread(target=lambda: removed.append(remove_older(database, LIMIT)))
    with database.begin() as opening:
        opening.execute(text("UPDATE finding SET ended_at = NULL, end_reason = NULL"))
        removing.start()
        assert wait_until(lambda: waits_for_a_lock(database), timeout_seconds=180)
    removing.join(10)
    assert removed == [2], "its old transitions"
    assert told(database, story) == {"a": (True, [])}


def test_a_database_that_is_away_is_told(database: Engine) -> None:
    with database.begin() as connection:
        connection.execute(text("DROP TABLE transition CASCADE"))
    with pytest.raises(StoreError, match="old transitions cannot be removed"):
        remove_older(database, LIMIT)


def test_findings_go_although_transitions_cannot(database: Engine) -> None:
    story = Story(database)
    rounds = [
        story.round({"ended": BREACH, "open": BREACH}, at=OLD),
        story.round({"ended": OK, "open": BREACH}, at=later(1)),
    ]
    store_rounds(database, rounds)
    with database.begin() as connection:
        connection.execute(text(f"DELETE FROM transition WHERE finding IN ({ENDED})"))  # noqa: S608
        connection.execute(text(REFUSES))
        connection.execute(text(ON_DELETE))
    with pytest.raises(StoreError, match="old transitions cannot be removed: too slow"):
        remove_older(database, LIMIT)
    assert told(database, story) == {"open": (True, [OLD])}


ENDED: Final = "SELECT id FROM finding WHERE ended_at IS NOT NULL"
REFUSES: Final = """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'too slow' USING ERRCODE = '57014'; END $$"""
ON_DELETE: Final = """CREATE TRIGGER rejects BEFORE DELETE ON transition
FOR EACH ROW EXECUTE FUNCTION refuse()"""
MANY: Final = 50_000
FILLED: Final = (
    """INSERT INTO finding (cluster, rule_id, labels, labels_hash, verdict, reason, evidence,
    severity, kind, since, last_breach_at, last_judged_at, ended_at, end_reason)
    SELECT :cluster, 'some_rule', '{}', n::text, 'ok', 'said', '{}', 'warning', 'state',
    :old, :old, :old, CAST(:old AS timestamptz) + n * interval '1 second', 'ok'
    FROM generate_series(1, :many) n""",
    """INSERT INTO transition (finding, at, reason, evidence)
    SELECT id, ended_at, 'said', '{}' FROM finding""",
    "ANALYZE",
)


def test_a_batch_reads_no_more_than_it_deletes(database: Engine) -> None:
    given = {"cluster": Story(database).cluster, "old": OLD, "many": MANY}
    explained = a_batch(LIMIT)
    with database.begin() as connection:
        for filling in FILLED:
            connection.execute(text(filling), given)
        for kind, index in (
            (Kind.TRANSITIONS, "Index Scan using ix_transition_at "),
            (Kind.FINDINGS, "Index Scan using ix_finding_ended_at "),
        ):
            lines = connection.execute(
                text("EXPLAIN " + retention.STATEMENTS[kind]), explained
            ).scalars()
            plan = "\n".join(lines)
            assert index in plan, plan
            assert "Seq Scan" not in plan, plan


def a_batch(before: datetime) -> dict[str, object]:
    """Return the parameters of a statement's first batch, beside another service's cluster."""
    others = {"name": "default", "others": [0], "other_names": ["other"]}
    return {"before": before, "batch": retention.BATCH, "at": "-infinity", "key": None, **others}


def test_each_service_removes_its_own_by_its_own_limit(database: Engine) -> None:
    stories = [Story(database), Story(database, "other"), Story(database, "unkept")]
    for story in stories:
        rounds = [story.round({"a": BREACH}, at=OLD), story.round({"a": OK}, at=later(1))]
        store_rounds(database, rounds)
        inbox = StoredInbox(lambda: database, story.key.name)
        add(inbox, delivery(1, received_at=OLD))
    claimed = text("UPDATE cluster SET claimed_at = :at WHERE name = 'unkept'")
    with database.begin() as connection:
        connection.execute(claimed, {"at": NEW - retention.UNKEPT_AFTER - MICROSECOND})
        connection.execute(
            text("UPDATE checkpoint SET taken_at = :at WHERE cluster = :cluster"),
            {
                "at": OLD - retention.UNKEPT_AFTER,
                "cluster": stories[2].cluster,
            },
        )
    assert remove_older(database, LIMIT) == 2 * 4, "of its own, and of the one that nobody keeps"
    left = [told(database, story) for story in stories]
    assert left == [{}, {"a": (False, [OLD, later(1)])}, {}]
    assert offsets(read(StoredInbox(lambda: database, "other"))) == [1]


def test_a_batch_of_another_services_rows_is_passed_over(
    database: Engine, story_of: MakeStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    other = Story(database, "other")
    rounds = [other.round(dict.fromkeys("abc", BREACH), at=OLD - LONG)]
    store_rounds(database, [*rounds, other.round(dict.fromkeys("abc", OK), at=later(1) - LONG)])
    story = story_of(1)
    assert remove_older(database, LIMIT) == 3
    assert told(database, story) == {}
    assert len(told(database, other)) == 3


def waits_for_a_lock(database: Engine) -> bool:
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with database.connect() as connection:
        return bool(connection.execute(waiting).scalar())


MakeStory = Callable[[int], Story]


@pytest.fixture
def story_of(database: Engine) -> MakeStory:
    """Make a story of so many findings that opened and ended long ago."""

    def make(count: int) -> Story:
        story = Story(database)
        names = [f"topic-{number}" for number in range(count)]
        rounds = [
            story.round(dict.fromkeys(names, BREACH), at=OLD),
            story.round(dict.fromkeys(names, OK), at=later(1)),
        ]
        store_rounds(database, rounds)
        return story

    return make
