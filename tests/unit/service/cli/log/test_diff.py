"""`tidemark log diff` on two folders as it is typed: what it writes, how it ends, what it does with bad input."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from rules.facts.log_files import Codec
from service.cli.main import run
from service.terminal.exit_codes import ExitCode
from tests.schemas import validate
from tests.unit.collectors.log_files.coordinator_batches import records_batch, records_bytes
from tests.unit.collectors.log_files.files import TOPIC_ID, checkpoint_text, write_log
from tests.unit.collectors.wire.records import TRANSACTIONAL, Batch, marker
from tests.unit.collectors.wire.test_compression import packed

PLACE: Final = "orders-3"


def of(first: int, *values: bytes, epoch: int = 0, producer: int = 7, **fields: Any) -> Batch:
    """Return a batch of a producer whose sequences are the offsets."""
    numbers = {"producer_id": producer, "producer_epoch": 0, "base_sequence": first}
    of_batch = {"base_offset": first, "leader_epoch": epoch, "is_checked": True}
    records = [(b"k", value) for value in values]
    return records_batch(records, **(of_batch | numbers | fields))


COMMON: Final = of(0, b"both", b"have")
COPY: Final = (COMMON, of(2, b"lost", b"\xff\xfe"), of(4, b"sent again"), of(5, b"beyond"))
NEW: Final = (
    COMMON,
    of(2, b"others", epoch=1, producer=8),
    of(3, b"sent again", epoch=1, base_sequence=4),
)


class Logs:
    """The two folders of a case."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(
        self,
        side: str,
        batches: Sequence[Batch],
        *epochs: str,
        topic_id: str = TOPIC_ID,
        high_watermark: int | None = None,
        cut: int = 0,
    ) -> Path:
        """Write a log directory with the partition; `cut` bytes of its end are missing."""
        content = b"".join(batch.encode() for batch in batches)
        path = write_log(self.folder / side / PLACE, content[: len(content) - cut])
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
        (path / "leader-epoch-checkpoint").write_text(checkpoint_text(*epochs))
        if high_watermark is not None:
            text = checkpoint_text(f"orders 3 {high_watermark}")
            (path.parent / "replication-offset-checkpoint").write_text(text)
        return path

    def both(self) -> tuple[Path, Path]:
        """Write the ordinary case: epoch 1 begins at offset 2."""
        old = self.write("old", COPY, "0 0", high_watermark=5)
        return old, self.write("new", NEW, "0 0", "1 2")


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


def diff(*arguments: str | Path) -> int:
    return run(["log", "diff", *map(str, arguments)])


def partition(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    document = json.loads(capsys.readouterr().out)
    validate("log diff", document)
    [only] = document["partitions"]
    return dict(only)


def counts(only: dict[str, Any]) -> dict[str, int]:
    return {fate: count for fate, count in only["records"].items() if count}


def test_only_what_is_certain_is_written(logs: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    lines, segment = logs.folder / "lost.jsonl", logs.folder / "lost.log"
    arguments = (*logs.both(), "--records", lines, "--segment", segment, "-o", "json")
    assert diff(*arguments) == ExitCode.LOST
    only = partition(capsys)
    assert counts(only) == {"lost": 2, "again": 1, "beyond_high_watermark": 1}
    assert (only["reason"], only["divergence_offset"], only["high_watermark"]) == (
        "committed_missing",
        2,
        5,
    )
    assert only["left_out_records"] == {"again": 1, "beyond_high_watermark": 1}
    first, second = map(json.loads, lines.read_text().splitlines())
    assert (first["offset"], first["key"], first["value"], first["value_encoding"]) == (
        2,
        "k",
        "lost",
        "utf-8",
    )
    assert (second["value"], second["value_encoding"], second["sequence"]) == ("//4=", "base64", 3)
    assert segment.read_bytes() == b"".join(batch.encode() for batch in COPY[1:])
    assert diff(*arguments) == ExitCode.USAGE, "a file that is there is not overwritten"


def test_a_higher_watermark_that_was_seen_proves_more(
    logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(*logs.both(), "--high-watermark", "6", "-o", "json") == ExitCode.LOST
    assert counts(partition(capsys)) == {"lost": 3, "again": 1}


def test_it_is_read_by_people(logs: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(*logs.both()) == ExitCode.LOST
    text = capsys.readouterr().out
    for words in (
        "orders-3  BREACH committed_missing",
        "Committed records of the copy are lost",
        "4 offsets, 2 to 5: 4 records in 3 batches, 0 control batches",
        "not lost: the producer sent the same batch again",
        "Only headers were compared",
        "Wait until the producers' delivery.timeout.ms",
    ):
        assert words in text


def test_records_of_brokers_are_not_written(logs: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    """Brokers reject them, and with them the transaction of all others in the file."""
    old, new = (path.rename(path.with_name("__consumer_offsets-3")) for path in logs.both())
    lines = logs.folder / "lost.jsonl"
    arguments = (old, new, "--high-watermark", "5", "--records", lines, "-o", "json")
    assert diff(*arguments) == ExitCode.LOST
    only = partition(capsys)
    assert (counts(only)["lost"], only["left_out_records"]["lost"], lines.read_text()) == (2, 2, "")
    assert any("only brokers write to this topic" in step for step in only["next_steps"])


@pytest.mark.parametrize(
    ("codec", "number"), [(Codec.GZIP, 1), (Codec.SNAPPY, 2), (Codec.LZ4, 3), (Codec.ZSTD, 4)]
)
def test_compressed_records_are_written_as_they_were(
    logs: Logs, capsys: pytest.CaptureFixture[str], codec: Codec, number: int
) -> None:
    payload = packed(codec, records_bytes([(b"k", b"lost"), (None, b"")]))
    lost = replace(of(2, b"", b""), attributes=number, payload=payload)
    old = logs.write("old", (COMMON, lost), "0 0", high_watermark=4)
    lines = logs.folder / "lost.jsonl"
    assert diff(old, logs.write("new", NEW, "0 0", "1 2"), "--records", lines) == ExitCode.LOST
    values = [json.loads(line)["value"] for line in lines.read_text().splitlines()]
    assert values == ["lost", ""]
    assert "2 records written" in capsys.readouterr().out


def test_a_batch_that_cannot_be_read_is_named_and_not_written(
    logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither damaged bytes nor a codec of a newer broker ends up as a record."""
    unknown = replace(of(3, b"x"), attributes=7)
    damaged = replace(of(2, b"x"), is_checked=False)
    old = logs.write("old", (COMMON, damaged, unknown, of(4, b"lost")), "0 0", high_watermark=5)
    lines = logs.folder / "lost.jsonl"
    new = logs.write("new", NEW[:2], "0 0", "1 2")
    assert diff(old, new, "--records", lines, "-o", "json") == ExitCode.LOST
    assert counts(partition(capsys)) == {"lost": 1, "not_readable": 2}
    assert [json.loads(line)["offset"] for line in lines.read_text().splitlines()] == [4]


def test_what_the_new_log_may_have_is_not_written(
    logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch of the new log cannot be read: it may be what was produced again."""
    old = logs.write("old", COPY[:2], "0 0", high_watermark=4)
    unknown = replace(of(3, b"x", epoch=1, producer=8), attributes=7)
    lines = logs.folder / "lost.jsonl"
    new = logs.write("new", (*NEW[:2], unknown), "0 0", "1 2")
    assert diff(old, new, "--records", lines, "-o", "json") == ExitCode.LOST
    only = partition(capsys)
    assert (only["reason"], counts(only)) == ("not_compared", {"not_compared": 2})
    assert lines.read_text() == ""


def test_what_was_produced_again_is_not_advised_a_second_time(
    logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person who follows the advice twice would duplicate the records."""
    old = logs.write("old", COPY[:2], "0 0", high_watermark=4)
    again = of(3, b"lost", b"\xff\xfe", epoch=1, producer=9)
    new = logs.write("new", (*NEW[:2], again), "0 0", "1 2")
    assert diff(old, new, "--records", logs.folder / "lost.jsonl", "-o", "json") == ExitCode.LOST
    only = partition(capsys)
    assert (counts(only), only["written_records"]) == ({"possibly_again": 2}, 0)
    steps = " ".join(only["next_steps"])
    assert "Produce nothing again" in steps
    assert "produce the records of the file" not in steps


def test_a_copy_that_is_cut_is_compared_as_far_as_it_goes(
    logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = logs.write("old", COPY, "0 0", high_watermark=5, cut=3), logs.both()[1]
    logs.write("old", COPY, "0 0", high_watermark=5, cut=3)
    assert diff(old, new, "-o", "json") == ExitCode.LOST
    only = partition(capsys)
    assert counts(only) == {"lost": 2, "again": 1}
    assert any("the file ends within a batch" in limit for limit in only["limits"])


@pytest.mark.parametrize(
    ("high_watermark", "fate"),
    [
        pytest.param(3, "lost", id="the coordinator wrote its marker to the new leader"),
        pytest.param(9, "undecided", id="a copy without its last segment may have had the marker"),
    ],
)
def test_the_new_log_ends_a_transaction_of_a_whole_copy_only(
    logs: Logs, capsys: pytest.CaptureFixture[str], high_watermark: int, fate: str
) -> None:
    old = logs.write(
        "old", (COMMON, of(2, b"x", attributes=TRANSACTIONAL)), "0 0", high_watermark=high_watermark
    )
    end = marker(is_commit=True, base_offset=2, producer_id=7, producer_epoch=0)
    new = logs.write("new", (COMMON, replace(end, leader_epoch=1)), "0 0", "1 2")
    diff(old, new, "-o", "json")
    assert counts(partition(capsys)) == {fate: 1}


def test_what_the_copy_had_deleted_is_not_lost(
    logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka Streams deletes what it has read of a repartition topic: the segment keeps it for a while."""
    old, new = logs.both()
    starts = checkpoint_text("orders 3 4")
    (old.parent / "log-start-offset-checkpoint").write_text(starts)
    diff(old, new, "-o", "json")
    assert counts(partition(capsys)) == {"again": 1, "beyond_high_watermark": 1}


def test_a_copy_without_its_first_segments_is_not_whole(
    logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    """What lies before its first segment may have been lost, too, and is not in the copy."""
    old = logs.write("old", COPY[2:3], "0 0", high_watermark=5)
    (old / "00000000000000000000.log").rename(old / "00000000000000000004.log")
    assert diff(old, logs.write("new", NEW, "0 0", "1 2"), "-o", "json") == ExitCode.INCOMPLETE
    only = partition(capsys)
    assert (only["reason"], counts(only)) == ("copy_is_cut", {"again": 1})
    assert any("The copy has no batch with the offsets 2 to 3" in limit for limit in only["limits"])


def test_offsets_that_the_new_log_lacks_may_be_what_was_sent_again(
    logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    old = logs.both()[0]
    lines = logs.folder / "lost.jsonl"
    new = logs.write("holed", (*NEW[:2], of(9, b"later", epoch=1, producer=8)), "0 0", "1 2")
    assert diff(old, new, "--records", lines, "-o", "json") == ExitCode.LOST
    only = partition(capsys)
    assert counts(only) == {"not_compared": 3, "beyond_high_watermark": 1}
    assert any(
        "The new log has no batch with the offsets 3 to 8" in limit for limit in only["limits"]
    )
    assert lines.read_text() == ""


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param({"cut": 3}, id="half a batch"),
        pytest.param({"high_watermark": 9}, id="its last segment is not there"),
    ],
)
def test_a_new_log_that_was_copied_in_part_proves_no_loss(
    logs: Logs, capsys: pytest.CaptureFixture[str], ending: dict[str, Any]
) -> None:
    """What is behind its end may be what the producer sent again."""
    old, new = logs.both()[0], logs.write("part", NEW, "0 0", "1 2", **ending)
    assert diff(old, new, "-o", "json") == ExitCode.LOST
    assert partition(capsys)["reason"] == "not_compared"


@pytest.mark.parametrize(
    ("epochs", "reason"),
    [
        pytest.param(("0 0", "2 3"), "new_is_not_later", id="swapped"),
        pytest.param(("0 0", "1 2"), "followed_new_leader", id="copied too late"),
    ],
)
def test_a_copy_that_proves_nothing_is_named(
    logs: Logs, capsys: pytest.CaptureFixture[str], epochs: tuple[str, ...], reason: str
) -> None:
    old, new = logs.write("old", NEW, *epochs), logs.write("new", NEW, "0 0", "1 2")
    assert diff(old, new, "-o", "json") == ExitCode.INCOMPLETE
    assert partition(capsys)["reason"] == reason


def test_another_topic_of_the_same_name_is_not_compared(
    logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    old = logs.write("old", COPY, "0 0", topic_id="B" * 22)
    assert diff(old, logs.write("new", NEW, "0 0", "1 2"), "-o", "json") == ExitCode.INCOMPLETE
    only = partition(capsys)
    assert (only["reason"], only["compared_by"], counts(only)) == ("other_topic_id", None, {})
    (old / "partition.metadata").unlink()
    assert diff(old, logs.folder / "new" / PLACE, "-o", "json") == ExitCode.INCOMPLETE
    assert partition(capsys)["reason"] == "no_topic_id"


def test_a_whole_log_directory_is_compared(logs: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = logs.both()
    write_log(old.parent / "payments-0", COMMON.encode())
    assert diff(old.parent, new.parent, "-o", "json") == ExitCode.LOST
    document = json.loads(capsys.readouterr().out)
    validate("log diff", document)
    assert [(each["topic"], each["reason"]) for each in document["partitions"]] == [
        ("orders", "committed_missing"), ("payments", "not_in_new"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("nowhere",), "nowhere does not exist"),
        (("empty",), "holds no log of Kafka"),
        (("renamed",), "name it with --partition"),
        ((PLACE, "--partition", "orders"), "is not TOPIC-PARTITION"),
        (("old", "--partition", "orders-4"), "has no partition orders-4"),
        (("old", "--partition", "orders-3", "--high-watermark", "-1"), "--high-watermark"),
        ((".", "--segment", "lost.log"), "--segment takes the batches of one partition"),
        ((".", "--high-watermark", "9"), "--high-watermark is of one partition"),
        ((PLACE, "--partition", "orders-4"), "has no partition orders-4"),
    ],
)
def test_bad_input_is_named(
    logs: Logs,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(logs.folder)
    for name in (PLACE, "payments-0", "renamed"):
        write_log(logs.folder / name, COMMON.encode())
    (logs.folder / "empty").mkdir()
    (logs.folder / "empty" / "notes.txt").write_text("no log")
    logs.write("old", COPY, "0 0")
    if options[0] == ".":
        (logs.folder / "renamed" / "00000000000000000000.log").unlink()
    assert diff(options[0], PLACE, *options[1:]) == ExitCode.USAGE
    assert words in " ".join(capsys.readouterr().err.split())


def test_another_partition_of_the_topic_is_not_the_new_log(
    logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = logs.both()
    other = new.rename(new.with_name("orders-2"))
    assert diff(old, other) == ExitCode.USAGE
    assert "has no partition orders-3" in " ".join(capsys.readouterr().err.split())


def test_a_renamed_folder_is_named_by_an_option(
    logs: Logs, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = logs.both()
    renamed = old.rename(old.with_name("backup-1"))
    assert diff(renamed, new, "--partition", PLACE, "-o", "json") == ExitCode.LOST
    assert partition(capsys)["topic"] == "orders"
