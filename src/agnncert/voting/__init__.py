"""From a model and a divided graph to ballots: may the model vote, how it is called, and two engines that cast."""
