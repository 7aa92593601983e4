"""What is reported about a node that does not start."""

from __future__ import annotations

from service.sandbox.cluster.readiness import last_error_line

LOG = """\
[2026-11-21 14:41:47,683] INFO Registered `kafka:type=kafka.Log4jController` MBean (kafka.utils.X$)
[2026-11-21 14:41:48,001] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
java.lang.RuntimeException: Invalid cluster.id in: /data/meta.properties. Expected A, but read B
\tat org.apache.kafka.metadata.properties.MetaPropertiesEnsemble.verify(MetaPropertiesEnsemble.java)
[2026-11-21 14:41:48,100] INFO App info kafka.server for 1 unregistered (org.apache.kafka.X)
"""


def test_the_last_error_line_is_the_exceptions_text() -> None:
    assert last_error_line(LOG) == (
        "java.lang.RuntimeException: Invalid cluster.id in: /data/meta.properties. "
        "Expected A, but read B"
    )


def test_a_log_without_an_error_has_none() -> None:
    assert last_error_line("[2026-11-21 14:41:48,100] INFO all is well (kafka.X)\n") is None


def test_what_java_says_before_logging_starts_counts() -> None:
    text = "Error occurred during initialization of VM\nInitial heap size set to a larger value\n"
    assert last_error_line(text) == "Error occurred during initialization of VM"
