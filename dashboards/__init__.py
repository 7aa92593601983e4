"""Grafana dashboards and Prometheus rule files, generated from code; imports rules.names only."""
