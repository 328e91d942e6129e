"""Schemas of their own in the operator's database, for what must touch no row there: the benchmark, and the torture."""
