"""Persistence in PostgreSQL: findings, alerts, checkpoints, tokens; no package above it uses SQL."""
