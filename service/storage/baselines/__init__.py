"""Baselines in the database: nightly runs are loaded whole, switched at once and read."""
