"""The baseline run: which days are missing, the Spark job that makes them, masks and publishing."""
