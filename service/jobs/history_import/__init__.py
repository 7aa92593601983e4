"""Import of history: files or a Prometheus server, packed by a Spark job, merged into the folder of history."""
