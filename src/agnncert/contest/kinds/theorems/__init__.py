"""Which moves a change allows under each theorem about votes of subgraphs: one object per theorem."""
