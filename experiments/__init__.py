"""Research code that is run from a clone: the paper's experiments and the benchmarks, with their rows."""
