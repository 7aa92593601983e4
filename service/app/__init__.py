"""Wiring: the only place that builds long-lived objects and hands them to each other.

`service.app.process` builds the whole service; it is not imported here, because it brings the
database and HTTP, which a command that only reads a cluster should not wait for.
"""

from service.app.cluster import bootstrap_addresses, cluster_checker, cluster_reader

__all__ = ["bootstrap_addresses", "cluster_checker", "cluster_reader"]
