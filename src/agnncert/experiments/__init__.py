"""The paper's experiments: which runs they are made of, how a run becomes a row, what is drawn from the rows."""
