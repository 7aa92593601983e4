"""Goes through the segments of logs on disk, and lets an analysis follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from collectors.log_files.coordinator_records import coordinator_records
from collectors.log_files.folders import LogPaths, find_logs
from collectors.log_files.segments import SegmentPart, read_segment
from rules.facts.log_files import FileProblem, ProblemKind
from rules.facts.log_folders import PartitionLog, SegmentFile
from rules.log_files.analysis import LogAnalysis
from service.views.log_files.inspected import InspectedLog

Show = Callable[[int], None]


class Files:
    """The logs below paths, whose segments are read one after the other."""

    def __init__(self, paths: Sequence[Path], *, verify: bool) -> None:
        """`verify` compares checksums, which reads all of the segments."""
        self.paths: LogPaths = find_logs(paths)
        self._verify = verify
        self._done = 0  # bytes of the segments before this one

    @property
    def has_nothing(self) -> bool:
        """Whether nothing of Kafka is below the paths, which the system lets us read."""
        paths = self.paths
        is_foreign = all(each.kind is ProblemKind.NOT_KAFKA for each in paths.problems)
        return is_foreign and not paths.logs and not paths.checkpoints

    def inspect(self, show: Show) -> Iterator[InspectedLog]:
        """Yield each log once it is read; `show` gets how many bytes were read so far."""
        for log in self.paths.logs:
            yield self._inspect(log, show)

    def parts(self, show: Show) -> Iterator[SegmentPart]:
        """Yield the batches and problems of all logs."""
        for log in self.paths.logs:
            for segment in log.segments:
                yield from self._read(segment, show)

    def _inspect(self, log: PartitionLog, show: Show) -> InspectedLog:
        analysis, problems = LogAnalysis(log), list(log.problems)
        coordinator = coordinator_records(log.name)
        for segment in log.segments:
            analysis.begin_segment(segment)
            for part in self._read(segment, show):
                if isinstance(part, FileProblem):
                    analysis.add_problem(part)
                    problems.append(part)
                    continue
                analysis.add(part)
                if coordinator is not None:
                    problems += coordinator.add(Path(segment.path), part)
        return InspectedLog(
            log=log,
            findings=analysis.findings(),
            coordinator=coordinator,
            problems=tuple(problems),
        )

    def _read(self, segment: SegmentFile, show: Show) -> Iterator[SegmentPart]:
        for part in read_segment(Path(segment.path), verify=self._verify):
            if not isinstance(part, FileProblem):
                show(self._done + int(part.position[-1]))
            yield part
        self._done += _size(segment)

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(_size(segment) for log in self.paths.logs for segment in log.segments)


def _size(segment: SegmentFile) -> int:
    try:
        return Path(segment.path).stat().st_size
    except OSError:
        return 0
