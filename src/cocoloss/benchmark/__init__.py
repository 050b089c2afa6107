"""Many models on many tables: what to run, how to run it, and where the results are kept."""
