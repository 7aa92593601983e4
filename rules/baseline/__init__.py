"""What is usual for a series, learnt every night, and how far a value is from it: pure."""
