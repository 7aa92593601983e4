"""Exit codes of `tidemark`, documented in the README and in `tidemark --help`."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a script may conclude from the end of a command."""

    OK = 0  # done; a round was complete, or its reader had enough of it (closed pipe)
    INCOMPLETE = 1  # a round was made, but it has gaps; they are in its output
    USAGE = 2  # unknown option or value; click's own code
    SETTINGS = 3  # a settings file, an environment variable or their combination is wrong
    UNREACHABLE = 4  # no bootstrap address answered; nobody answers as Tidemark at --server
    AUTHENTICATION = 5  # a broker, or the Tidemark that was asked, answered and rejected us
    NOTHING_MATCHED = 6  # a filter or a name matched nothing, and the round was complete
    SANDBOX = 7  # the local cluster cannot do what was asked
    OUTPUT = 8  # the output could not be written; a reader that closed the pipe early is no error
    STORE = 9  # the database rejected, is away or of another schema; data directory in use
    FAILED = 10  # the service ended because a part that it needs died; Spark made no night
    HANGING = 11  # a transaction hangs: nobody will ever end it
    LOST = 12  # committed records are lost, or may be
    NO_SEQUENCES = 13  # no line of the text that was to be explained is about sequences
    CONFLICT = 14  # what is asked for does not fit what is there now
    INTERRUPTED = 130  # Ctrl-C
