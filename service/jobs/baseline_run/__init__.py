"""The night: which runs are missing, the Spark job that makes them, and what surrounds it."""
