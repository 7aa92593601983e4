"""Whatever rotates a log and however often its reader dies: every line is read exactly once."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from collectors.broker_log.log_reading import PassLimits
from tests.unit.collectors.broker_log.fake_disk import LOG, FakeDisk
from tests.unit.collectors.broker_log.tailing import Tailing, lines_of

SMALL = PassLimits(bytes=40, seconds=3600)


class Story:
    """A log that is written, rotated and read in some order."""

    def __init__(self) -> None:
        self.disk = FakeDisk()
        self.tailing = Tailing(self.disk, limits=SMALL)
        self.written: list[str] = []
        self.read: list[str] = []
        self.rotations = 0
        self.is_begun = False  # a line without its end
        self.errors: list[str] = []
        self.shown: set[str] = set()  # lines that were there at some observation
        self.is_behind = False
        self.has_ties = False  # two files were written last at the same time
        self.disk.append(b"before\n")
        self.observe()

    def write(self) -> None:
        """Write a line, or the end of one."""
        text = f"line-{len(self.written)}"
        self.written.append(text)
        self.disk.append((text[3:] if self.is_begun else text).encode() + b"\n")
        self.is_begun = False

    def write_ten(self) -> None:
        for _ in range(10):
            self.write()

    def begin_line(self) -> None:
        """Write the first bytes of a line; log4j never rotates within one."""
        if not self.is_begun:
            self.disk.append(b"lin")
            self.is_begun = True

    def rotate_by_number(self) -> None:
        if self._can_rotate():
            self.disk.rotate_by_number()

    def rotate_by_date(self) -> None:
        if self._can_rotate():
            self.disk.rename(LOG, f"{LOG}.2026-11-21-{self.rotations}")

    def copy_and_cut(self) -> None:
        if self._can_rotate():
            self.disk.copy(LOG, f"{LOG}-2026{self.rotations}")
            self.disk.cut()

    def keep_a_copy(self) -> None:
        """Somebody lays a copy aside."""
        if LOG in self.disk.files:
            self.disk.copy(LOG, f"{LOG}.keep")

    def tick(self) -> None:
        self.disk.tick()

    def observe(self) -> None:
        for path, inode in self.disk.files.items():
            if not path.endswith((".gz", ".keep")):
                self.shown |= set(bytes(inode.content).decode().split("\n")[:-1])
        found = self.tailing.read_once()
        self.read += lines_of(found)
        self.errors += [gap.why for gap in found.gaps]
        self.is_behind = found.is_behind

    def observe_and_die(self) -> None:
        """Die after the observation and before it is stored."""
        self.tailing.read_once(is_stored=False)
        self.tailing.crash()

    def die(self) -> None:
        self.tailing.crash()

    def _can_rotate(self) -> bool:
        if self.is_begun or LOG not in self.disk.files:
            return False
        self.rotations += 1
        times = [inode.modified_ns for inode in self.disk.files.values()]
        self.has_ties |= len(set(times)) < len(times)
        return True

    def remove_oldest(self) -> None:
        rotated = sorted(
            (inode.modified_ns, path) for path, inode in self.disk.files.items() if path != LOG
        )
        if rotated:
            self.disk.remove(rotated[0][1])

    def remove_log(self) -> None:
        self.is_begun = False
        self.disk.remove(LOG)

    def cut(self) -> None:
        if LOG in self.disk.files:
            self.is_begun = False
            self.disk.cut()

    def compress_newest(self) -> None:
        """Put gzip's bytes in place of the file that was rotated last, with its time."""
        rotated = [path for path in self.disk.files if path != LOG and not path.endswith(".gz")]
        if rotated:
            newest = max(rotated, key=lambda path: self.disk.files[path].modified_ns)
            written_ns = self.disk.files[newest].modified_ns
            self.disk.remove(newest)
            self.disk.append(b"\x1f\x8b" + newest.encode() + b"x" * 30, f"{newest}.gz")
            self.disk.files[f"{newest}.gz"].modified_ns = written_ns

    def set_clock_back(self) -> None:
        self.disk.tick(-3600)

    def end(self) -> None:
        """Observation until nothing waits."""
        if self.is_begun:
            self.write()
        for _ in range(1000):
            self.observe()
            if not self.is_behind:
                return
        raise AssertionError("it never comes to the end")


LOSSLESS = (
    "write", "write_ten", "begin_line", "rotate_by_number", "rotate_by_date", "copy_and_cut",
    "keep_a_copy", "tick", "observe", "observe_and_die", "die",
)  # fmt: skip
LOSING = ("remove_oldest", "remove_log", "cut", "compress_newest", "set_clock_back")


def told(steps: list[str]) -> Story:
    """Return a story to its end."""
    story = Story()
    for step in steps:
        getattr(story, step)()
    story.end()
    return story


# Each of these was read wrong once.
ONCE_WRONG = (
    "copy_and_cut observe write copy_and_cut",
    "copy_and_cut observe tick write copy_and_cut tick write_ten rotate_by_number",
    "rotate_by_date begin_line observe tick write copy_and_cut tick write rotate_by_date",
    "write keep_a_copy copy_and_cut observe keep_a_copy observe",
    "rotate_by_number begin_line observe write_ten copy_and_cut write",
    "copy_and_cut begin_line observe write_ten copy_and_cut begin_line",
)
ONCE_LOST_OR_TWICE = (
    "keep_a_copy write remove_log",
    "write_ten rotate_by_number write_ten observe cut",
    "write_ten copy_and_cut write observe observe_and_die remove_log write_ten",
    "cut observe rotate_by_number compress_newest write_ten observe_and_die keep_a_copy",
    "cut observe rotate_by_date write remove_oldest die keep_a_copy",
    "cut observe remove_log write observe copy_and_cut",
    "write observe copy_and_cut write_ten remove_log write rotate_by_number",
    "write_ten rotate_by_date write observe copy_and_cut write_ten remove_log",
    "copy_and_cut observe compress_newest observe remove_oldest rotate_by_date write_ten",
)


def test_what_was_read_wrong_once_is_read_right() -> None:
    for steps in ONCE_WRONG:
        story = told(steps.split())
        assert story.errors == [], steps
        assert Counter(story.read) == Counter(story.written), steps
        assert story.has_ties or story.read == story.written, steps
    for steps in ONCE_LOST_OR_TWICE:
        story = told(steps.split())
        assert max(Counter(story.read).values(), default=1) == 1, steps
        assert story.errors or story.shown - {"before"} <= set(story.read), steps


@given(st.lists(st.sampled_from(LOSSLESS), max_size=60))
def test_every_line_is_read_exactly_once(steps: list[str]) -> None:
    story = told(steps)
    assert story.errors == []
    assert Counter(story.read) == Counter(story.written)
    if not story.has_ties:
        assert story.read == story.written


@given(st.lists(st.sampled_from(LOSSLESS + LOSING), max_size=60))
def test_no_line_is_read_twice_and_none_is_lost_in_silence(steps: list[str]) -> None:
    story = told(steps)
    assert max(Counter(story.read).values(), default=1) == 1
    if story.errors == []:
        assert story.shown - {"before"} - set(story.read) == set()
