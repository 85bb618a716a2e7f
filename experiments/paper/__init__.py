"""The paper's experiments: the runs, a row of results for each, and the page made from the rows."""
