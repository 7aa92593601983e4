"""The user of Spark's processes where the system has no name for it: a container's own user id.

Java has a user's name and home from the system's list of users alone. Without them Ivy, which Spark sets up at
every start, finds no home, and Hadoop, which holds the secret of a local Spark, no login.
"""

from __future__ import annotations

import os
import pwd
from typing import Any, Final

NAME: Final = "tidemark"


def is_named(uid: int) -> bool:
    """Return whether the system has a name for a user id."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def named_environment() -> dict[str, str]:
    """Return what names an unnamed user to Spark and to Hadoop."""
    return {"SPARK_USER": NAME, "HADOOP_USER_NAME": NAME}


def log_in(jvm: Any) -> None:
    """Log in to Hadoop within a JVM, if its own login would fail for want of a name."""
    if not is_named(os.geteuid()):
        hadoop = jvm.org.apache.hadoop.security.UserGroupInformation
        name = os.environ.get("HADOOP_USER_NAME", NAME)
        hadoop.setLoginUser(hadoop.createRemoteUser(name))
