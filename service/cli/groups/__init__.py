"""`tidemark groups` and `tidemark lag`: who reads what, how far behind, and what it waits for."""
