"""Exit codes of `tidemark`, documented in docs/exit-codes.md and in `tidemark --help`."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a script may conclude from the end of a command."""

    OK = 0  # done; a round was complete, or the reader closed the pipe
    INCOMPLETE = 1  # the round has gaps (in its output), or a list is not current
    USAGE = 2  # unknown option or value; click's own code
    SETTINGS = 3  # a settings file, an environment variable or their combination is wrong
    UNREACHABLE = 4  # no bootstrap address answered; no Tidemark answers at --server
    AUTHENTICATION = 5  # a broker, or the Tidemark at --server, answered and rejected us
    NOTHING_MATCHED = 6  # a filter or a name matched nothing, and the round was complete
    SANDBOX = 7  # the local cluster cannot do what is requested
    OUTPUT = 8  # the output could not be written; a reader that closed the pipe early is no error
    STORE = 9  # database unreachable, rejects us or has another schema; data directory in use
    FAILED = 10  # a part that the service needs failed; Spark failed
    HANGING = 11  # a transaction hangs: no coordinator will ever end it
    LOST = 12  # committed records are lost, or may be
    NOTHING_TO_EXPLAIN = 13  # the text to explain has nothing of Kafka, or of sequences
    CONFLICT = 14  # the current state does not allow the change
    NOT_INSTALLED = 15  # what it needs is an extra that is not installed
    FIRING = (
        16  # an alert fires, and `status --exit-code` was to say so; a setting is wrong (`posture`)
    )
    INTERRUPTED = 130  # Ctrl-C
