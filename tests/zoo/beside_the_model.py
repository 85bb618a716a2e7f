"""A module of one's own beside a model, in which the model keeps what it counts."""

calls = 0
