"""``Evaluator`` and ``Probe``: a model on a probe graph, and whether outputs that must stay the same have changed.

Where shapes stay the same, outputs must be equal bit for bit. Where they change, rounding may differ, and outputs are
compared in double precision.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn

from agnncert.auditing.findings import Finding
from agnncert.auditing.probe_graphs import FeatureTable, ProbeGraph
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.features import Features
from agnncert.errors import ModelContractError

# Above this many numbers, features are passed as LazyRows, as in the fast engine.
MOST_PLAIN_NUMBERS = 2**20
UNITS_OF_ROUNDING = 1000  # a larger difference is not explained by rounding
EXACT = 1e-9  # the same in double precision, for outputs that rounding noise leaves alone


class Failed(ModelContractError):  # noqa: N818 - it is caught and becomes a finding
    """The model cannot be run on a graph that an attack could produce."""

    def __init__(self, graph: ProbeGraph, error: Exception) -> None:
        self.what = f"a graph of {graph.num_nodes} nodes and {graph.num_edges} edges"
        self.why = f"makes the model fail: {type(error).__name__}: {error}"
        super().__init__(f"{self.what} {self.why}")

    def finding(self) -> Finding:
        """Returns the finding that describes the failure."""
        remedy = "Subgraphs and attacked graphs can have any number of nodes and edges: the model must accept them."
        return Finding("behaviour", self.what, self.why, remedy)


class Evaluator:
    """Evaluates a model on probe graphs whose features are rows of one table, in the precision of the model.

    Args:
        adapter: The model.
        table: Rows of features, shape ``[num_rows, num_features]``.
        most_plain: Number of features above which they are passed as ``LazyRows``.
    """

    def __init__(self, adapter: ModelAdapter, table: Tensor, most_plain: int = MOST_PLAIN_NUMBERS) -> None:
        self.adapter = adapter
        self.most_plain = most_plain
        self.table = table.to(adapter.dtype)

    @cached_property
    def features(self) -> Features:
        """The table as ``Features``, which keep their products with weights of first layers."""
        return Features(self.table)

    def logits(self, graph: ProbeGraph, model: nn.Module | Callable[..., Tensor] | None = None) -> Tensor:
        """Returns the logits of all nodes, or of all graphs in the graph task.

        Args:
            graph: The graph.
            model: A model to call instead. Defaults to that of the evaluator.

        Raises:
            Failed: The model fails on a graph that an attack could produce.
        """
        adapter = self.adapter if model is None else replace(self.adapter, model=model)
        if graph.rows.numel() * self.table.size(1) <= self.most_plain:
            x = self.table.index_select(0, graph.rows)
        else:
            x = self.features.rows(graph.rows)
        batch = graph.position if adapter.task == "graph" else None
        try:
            return adapter(x, graph.edge_index, graph.values, batch)  # the model gets copies
        except ModelContractError as error:
            if not isinstance(error.__cause__, Exception):  # not an exception that the model raised
                raise
            raise Failed(graph, error.__cause__) from error

    def logits_of_each(self, graphs: Sequence[ProbeGraph]) -> list[Tensor]:
        """Returns the logits of several graphs, which are evaluated one after the other."""
        return [self.logits(graph) for graph in graphs]

    def with_rounding_noise(self) -> "Evaluator":
        """Returns the same evaluator with features perturbed by about one unit of rounding."""
        sign = torch.randint(-1, 2, self.table.shape, generator=torch.Generator().manual_seed(3))
        return Evaluator(self.adapter, self.table * (1 + sign * torch.finfo(self.adapter.dtype).eps))


@dataclass(frozen=True)
class DoublePrecision:
    """A probe in double precision.

    Attributes:
        evaluator: Evaluates the model in double precision.
        logits: Logits of the unchanged graph.
        bound: Largest difference that rounding explains.
    """

    evaluator: Evaluator
    logits: Tensor
    bound: float


class Probe:
    """One probe graph, its logits, and the largest difference that rounding explains.

    Args:
        evaluator: Evaluates the model, with the features of ``table``.
        make_double: Returns the model in double precision, or ``None`` if it cannot be converted.
        table: Features of the graph.
        graph: The graph.

    Attributes:
        deviation: Largest difference so far that rounding explains.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        make_double: Callable[[], ModelAdapter | None],
        table: FeatureTable,
        graph: ProbeGraph,
    ) -> None:
        self.evaluator = evaluator
        self.table = table
        self.graph = graph
        self.deviation = 0.0
        self._make_double = make_double

    @cached_property
    def base(self) -> Tensor:
        """Logits of the unchanged graph."""
        return self.evaluator.logits(self.graph)

    @cached_property
    def finite(self) -> bool:
        """Whether all logits of the unchanged graph are finite."""
        return bool(torch.isfinite(self.base).all())

    @cached_property
    def double(self) -> DoublePrecision | None:
        """The probe in double precision, or ``None`` if the model cannot be evaluated so."""
        adapter = self._make_double()
        if adapter is None:
            return None
        evaluator = Evaluator(adapter, self.table.x)
        try:
            logits = evaluator.logits(self.graph)
            noise = relative_difference(logits, evaluator.with_rounding_noise().logits(self.graph))
        except ModelContractError:
            return None
        if noise == torch.inf:
            return None
        by_rounding = UNITS_OF_ROUNDING * self._eps
        least = by_rounding if self.evaluator.adapter.dtype == torch.float64 else EXACT
        bound = min(max(least, 1000 * noise), max(EXACT, by_rounding))
        return DoublePrecision(evaluator, logits, bound)

    @property
    def _eps(self) -> float:
        return torch.finfo(self.evaluator.adapter.dtype).eps

    def moved(
        self, change: ProbeGraph, here: Tensor | None = None, there: Tensor | None = None, bits: bool = False
    ) -> bool:
        """Returns whether outputs that must stay the same differ after a change.

        Args:
            change: The changed graph.
            here: Rows of the outputs to compare. Defaults to all.
            there: Their rows after the change. Defaults to ``here``.
            bits: Whether shapes are unchanged, so that outputs must be equal bit for bit.
        """
        if here is None:
            here = torch.arange(len(self.base))
        if there is None:
            there = here
        if bits or self.double is None:
            before = self.base[here]
            after = self.evaluator.logits(change)[there]
            if torch.equal(before, after):
                return False
            if self.double is None:
                return self.exceeds_rounding(relative_difference(before, after))
        # A model that drops edges does not keep shapes. Double precision tells whether the difference is rounding.
        after = self.double.evaluator.logits(change)[there]
        return relative_difference(self.double.logits[here], after) > self.double.bound

    def is_stateless(self, again: Tensor | None = None) -> bool:
        """Returns whether a second call gives the same logits for the unchanged graph.

        Args:
            again: The logits of the second call. Defaults to those of a call now.
        """
        if again is None:
            again = self.evaluator.logits(self.graph)
        if torch.equal(self.base, again):
            return True
        if self.exceeds_rounding(relative_difference(self.base, again)):
            return False
        if self.double is None:
            return True
        # Another order of sums, or small random changes: double precision tells.
        evaluator = self.double.evaluator
        return relative_difference(evaluator.logits(self.graph), evaluator.logits(self.graph)) <= EXACT

    def differs(self, change: ProbeGraph, here: Tensor, there: Tensor) -> bool:
        """Returns what ``moved`` does, but asks for double precision only if the precision of the model shows more."""
        before = self.base[here]
        after = self.evaluator.logits(change)[there]
        if not self.exceeds_rounding(relative_difference(before, after)):
            return False
        return self.double is None or self.moved(change, here, there)

    def exceeds_rounding(self, difference: float) -> bool:
        """Returns whether a difference is larger than rounding explains. ``deviation`` keeps the largest other."""
        if difference > UNITS_OF_ROUNDING * self._eps:
            return True
        self.deviation = max(self.deviation, difference)
        return False

    def first_that_runs_moves(self, changes: Iterable[ProbeGraph], here: Tensor, bits: bool = False) -> bool:
        """Returns whether outputs differ after the first change, or after the second if the model fails on the first.

        A model may read features as category numbers and fail on others. The second change uses features of other
        nodes.
        """
        first, second = changes
        try:
            return self.moved(first, here, bits=bits)
        except Failed:
            return self.moved(second, here, bits=bits)


def relative_difference(first: Tensor, second: Tensor) -> float:
    """Returns the largest difference, relative to the largest logit of each row of ``first`` or 1.

    It is infinite if logits are not comparable, because some are NaN or infinite.
    """
    if not first.numel():
        return 0.0
    size = first.abs().amax(dim=1, keepdim=True).clamp(min=1.0)
    difference = float(((first - second).abs() / size).max())
    return difference if difference < torch.inf else torch.inf
