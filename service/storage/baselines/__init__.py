"""Baselines in the database: nightly runs are loaded as a whole, switched atomically, and read."""
