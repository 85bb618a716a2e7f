"""Known models, evaluated layer by layer with bounds on rounding.

``BoundedModel`` computes the function of a module that was read, with sums in an order of its own: in exact arithmetic
the result is the same. Beside every row it computes bounds (``error_bounds``). A layer that it cannot bound, or a
setting of one, raises ``NotBoundedError``.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.utils import add_remaining_self_loops

from agnncert.engine import error_bounds as bound
from agnncert.engine.bounded_arcs import Arcs, Received, Sent
from agnncert.engine.bounded_attention import AttentionInput, HeadNorms, attention, head_norms
from agnncert.engine.bounded_blocks import (
    BLOCK_ROWS,
    Exchange,
    RowBlock,
    evaluate_in_blocks,
    evaluate_together,
    row_blocks,
)
from agnncert.engine.bounded_rows import BoundedRows, exact_rows
from agnncert.engine.error_bounds import DOUBLE, UP, Activation, Bounds, Precision, WeightNorms
from agnncert.engine.features import Features, LazyRows
from agnncert.engine.operator_norms import vector_norm, weight_norms
from agnncert.models import gnn
from agnncert.models.wrappers import Fallback, Scaling

LEAST_WEIGHT = 2.0**-40  # weights of edges that are bounded: 0, and from here
LARGEST_WEIGHT = 2.0**40  # to here
LEAST_TOTAL = 2.0**-60  # of the absolute attributes at a node: shares of less are not bounded


class NotBoundedError(Exception):
    """A layer, or a setting of one, whose rounding is not bounded."""


class FeatureRows(NamedTuple):
    """Rows of the features, which are given exactly.

    Attributes:
        features: The features.
        rows: Which rows.
    """

    features: Features
    rows: Tensor


Input = BoundedRows | FeatureRows


class Edges(NamedTuple):
    """What layers read of a graph beside its features.

    Attributes:
        arcs: The edges.
        arcs_without_loops: The same without loops.
        edge_index: The edges as they were given; none if only some rows are computed.
        values: What they carry, by name, as it was given.
        normalised: For the library's own GCN: the sums that all its layers share.
    """

    arcs: Arcs
    arcs_without_loops: Arcs
    edge_index: Tensor
    values: Mapping[str, Tensor]
    normalised: "GcnSums | None" = None


class BoundedModel:
    """A known module, evaluated with bounds.

    Args:
        model: The module, with weights that the precision's type holds exactly.
        precision: How numbers are rounded.
    """

    def __init__(self, model: nn.Module, precision: Precision) -> None:
        self.model = model
        self.precision = precision
        self._converted: dict[int, Tensor] = {}
        self._norms: dict[tuple[int, bool], WeightNorms] = {}
        self._lengths: dict[tuple[int, bool], float] = {}
        self._heads: dict[int, list[HeadNorms]] = {}

    def in_precision(self, precision: Precision) -> "BoundedModel":
        """Returns the same module in another precision. Norms of weights are shared."""
        other = BoundedModel(self.model, precision)
        other._norms = self._norms
        other._lengths = self._lengths
        other._heads = self._heads
        return other

    def __call__(
        self, x: Tensor, edge_index: Tensor, values: Mapping[str, Tensor], batch: Tensor | None = None
    ) -> BoundedRows:
        """Returns logits, and bounds in the maximum norm.

        Args:
            x: Features, in the type of the weights.
            edge_index: Edges.
            values: What the edges carry, by name.
            batch: Graph task: the graph of every node, ascending.

        Raises:
            NotBoundedError: The module has a layer that cannot be bounded.
        """
        found: list[BoundedRows] = []
        self.in_blocks(x, edge_index, values, batch, lambda rows, logits: found.append(logits), block_rows=x.size(0))
        return found[0]

    @torch.no_grad()
    def in_blocks(
        self,
        x: Tensor,
        edge_index: Tensor,
        values: Mapping[str, Tensor],
        batch: Tensor | None,
        finish: Callable[[Tensor | slice, BoundedRows], None],
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        """Computes logits, some rows at a time, so that hidden layers stay in the processor's cache.

        Args:
            x: As in a call, like all arguments that follow.
            edge_index: Edges.
            values: What the edges carry, by name.
            batch: Graph task: the graph of every node, ascending.
            finish: Called with some rows and their logits, until it has seen all rows.
            block_rows: How many rows are computed at a time. Graphs with at most twice as many are computed as a whole,
                and so are those whose edges carry values, those of the graph task, and models with attention.

        Raises:
            NotBoundedError: The module has a layer that cannot be bounded.
        """
        features, index = (x.features, x.index) if isinstance(x, LazyRows) else _all_rows(x)
        arcs = Arcs.of(edge_index, x.size(0))
        is_whole = batch is not None or bool(values) or x.size(0) <= 2 * block_rows or not self._works_in_blocks()
        with torch.autocast("cpu", enabled=False):
            if is_whole:
                edges = Edges(arcs, arcs.without_loops, edge_index.long(), values)
                logits = self._logits(self.model, FeatureRows(features, index), edges, batch)
                finish(slice(None), evaluate_together(logits))
                return
            no_edges = edge_index[:, :0].long()

            def begin(block: RowBlock) -> Exchange:
                edges = Edges(block.arcs, block.arcs_without_loops, no_edges, {})
                return self._logits(self.model, FeatureRows(features, index[block.rows]), edges, None)

            evaluate_in_blocks(row_blocks(arcs, block_rows), begin, finish)

    @torch.no_grad()
    def of_rows(self, rows: BoundedRows) -> BoundedRows:
        """Returns what a module that works on each row by itself makes of rows with bounds, in the maximum norm.

        Raises:
            NotBoundedError: The module has a layer that cannot be bounded.
        """
        with torch.autocast("cpu", enabled=False):
            return self._layer(self.model, rows, is_output=True)

    def _works_in_blocks(self) -> bool:
        """Tells whether each row reads nothing of the others but what they send."""
        layers = [layer for layer in self.model.modules() if isinstance(layer, pyg.MessagePassing)]
        return type(self.model) is not Fallback and all(type(layer) in _SENDING for layer in layers)

    def _logits(self, model: Any, x: Input, edges: Edges, batch: Tensor | None) -> Exchange:
        if isinstance(model, gnn.GNN):
            return (yield from self._own_stack(model, x, edges, batch))
        if batch is not None:
            raise NotBoundedError(type(model).__name__)
        if type(model) in (pyg.GCN, pyg.GraphSAGE, pyg.GIN, pyg.GAT):
            return (yield from self._pyg_stack(model, x, edges))
        if type(model) is Fallback:
            return (yield from self._fallback(model, x, edges))
        if isinstance(model, pyg.MessagePassing):
            return (yield from self._convolution(model, x, edges, is_output=True))
        return self._layer(model, x, is_output=True)

    # Stacks of layers

    def _own_stack(self, model: Any, x: Input, edges: Edges, batch: Tensor | None) -> Exchange:
        """Follows ``GNN.logits``."""
        if "scaling" in model._modules:
            x = self._scaled(model.scaling, x)
        if model.lin_in is not None:
            x = self._linear(model.lin_in, x, is_output=False)
        if model.config["name"] in gnn.WEIGHTED:
            # Where the library's own GCN meets edges, it has normalised them with loops, once for all layers.
            edges = edges._replace(normalised=self._gcn_sums(edges, add_loops=True))
        outputs = []
        for k, layer in enumerate(model.convs):
            is_output = model.lin is None and k == len(model.convs) - 1
            convolution = self._convolution(layer, x, edges, is_output)
            before = self._rows(x) if model.residual else None
            del x  # while other rows are computed, it would take memory
            out = yield from convolution
            if k < len(model.norms):
                out = self._activation(model.act, self._layer(model.norms[k], out))
            x = out if before is None else self._added(before, out)
            del out, before
            if model.jump is not None:
                outputs.append(x)
        if model.jump is not None:
            x = self._jump(model.jump, outputs)
        if batch is not None:
            x = self._readout(model.config["readout"], self._rows(x), batch)
        return self._rows(x) if model.lin is None else self._linear(model.lin, x, is_output=True)

    def _pyg_stack(self, model: Any, x: Input, edges: Edges) -> Exchange:
        """Follows ``BasicGNN.forward``."""
        outputs = []
        has_jump = hasattr(model, "jk")
        for k, (layer, norm) in enumerate(zip(model.convs, model.norms, strict=True)):
            is_output = k == model.num_layers - 1 and not has_jump and not hasattr(model, "lin")
            x = yield from self._convolution(layer, x, edges, is_output)
            if k < model.num_layers - 1 or model.jk_mode is not None:
                x = self._norm_and_activation(model, norm, x)
                outputs.append(x)
        if has_jump:
            if type(model.jk) is not pyg.JumpingKnowledge or model.jk.mode not in ("cat", "max"):
                raise NotBoundedError("JumpingKnowledge")
            x = self._jump(model.jk.mode, outputs)
        return self._linear(model.lin, x, is_output=True) if hasattr(model, "lin") else self._rows(x)

    def _norm_and_activation(self, model: Any, norm: nn.Module, x: Input) -> BoundedRows:
        """Follows what stacks and networks of PyTorch Geometric do after a layer, in evaluation mode."""
        if model.act is not None and model.act_first:
            x = self._activation(model.act, x)
        x = self._layer(norm, x)
        if model.act is not None and not model.act_first:
            x = self._activation(model.act, x)
        return x

    def _network(self, model: Any, x: Input, is_output: bool) -> BoundedRows:
        """Follows ``MLP.forward``."""
        last = len(model.lins) - 1
        for k, norm in enumerate(model.norms):
            x = self._linear(model.lins[k], x, is_output=False)
            x = self._norm_and_activation(model, norm, x)
        return self._linear(model.lins[last], x, is_output) if model.plain_last else self._rows(x)

    def _fallback(self, model: Any, x: Input, edges: Edges) -> Exchange:
        """Follows ``Fallback.forward``."""
        if not isinstance(x, FeatureRows):
            raise NotBoundedError("Fallback")
        values = {name: edges.values[name] for name in model.takes if name in edges.values}
        source, head = edges.edge_index
        is_reached = torch.zeros(edges.arcs.num_rows, dtype=torch.bool)
        is_reached[head[source != head]] = True
        nothing = edges.edge_index[:, :0]
        no_arcs = Arcs.of(nothing, edges.arcs.num_rows)
        alone = yield from self._logits(model.without_edges, x, Edges(no_arcs, no_arcs, nothing, {}), None)
        along = yield from self._logits(model.model, x, edges._replace(values=values), None)
        size = torch.where(is_reached, along.bounds.size, alone.bounds.size)
        error = torch.where(is_reached, along.bounds.error, alone.bounds.error)
        return BoundedRows(torch.where(is_reached[:, None], along.values, alone.values), Bounds(size, error))

    # Layers that work on each row by itself

    def _layer(self, layer: nn.Module, x: Input, is_output: bool = False) -> BoundedRows:
        """Evaluates a layer that works on each row by itself."""
        evaluate = _OF_ROWS.get(type(layer))
        if evaluate is not None:
            return evaluate(self, layer, x)
        if type(layer) in (nn.Linear, pyg.Linear):
            return self._linear(layer, x, is_output)
        if type(layer) is pyg.MLP:
            return self._network(layer, x, is_output)
        if isinstance(layer, nn.Sequential):
            parts = list(layer)
            for k, part in enumerate(parts):
                x = self._layer(part, x, is_output and k == len(parts) - 1)
            return self._rows(x)
        return self._activation(layer, x)

    def _rows(self, x: Input) -> BoundedRows:
        """Returns features as rows of their own, if nothing has been computed from them."""
        if isinstance(x, BoundedRows):
            return x
        return exact_rows(x.features.copy(x.rows), self.precision)

    def _linear(self, layer: Any, x: Input, is_output: bool) -> BoundedRows:
        projected = self._product(layer.weight, x, is_output)
        if layer.bias is None:
            return projected
        return self._with_bias(layer.bias, projected, is_output)

    def _with_bias(self, bias: Tensor, rows: BoundedRows, is_output: bool) -> BoundedRows:
        bounds = bound.after_bias(rows.bounds, self._length(bias, is_output), _width(rows, is_output), self.precision)
        return BoundedRows(rows.values.add_(bias), bounds)

    def _product(self, weight: Tensor, x: Input, is_output: bool) -> BoundedRows:
        """Returns the product of rows with a weight."""
        norms = self._weight_norms(weight, is_output)
        if isinstance(x, FeatureRows):
            return x.features.bounded_projection(x.rows, weight, norms, self.precision)
        values = F.linear(x.values, self._as_precise(weight))
        bounds = bound.after_linear(self._observed(x), x.width, norms, self.precision)
        return BoundedRows(values, bounds)

    def _as_precise(self, weight: Tensor) -> Tensor:
        """Returns a weight in the precision's type. Smaller operands are converted by the operations themselves."""
        if weight.dtype == self.precision.dtype:
            return weight
        if id(weight) not in self._converted:
            self._converted[id(weight)] = weight.to(self.precision.dtype)
        return self._converted[id(weight)]

    def _observed(self, rows: BoundedRows) -> Bounds:
        """Returns the bounds of rows, with sizes that are also bounded by what was computed."""
        return bound.observed(rows.bounds, rows.values, self.precision)

    def _weight_norms(self, weight: Tensor, is_output: bool) -> WeightNorms:
        key = (id(weight), is_output)
        if key not in self._norms:
            self._norms[key] = weight_norms(weight, is_output)
        return self._norms[key]

    def _length(self, bias: Tensor | None, is_output: bool) -> float:
        if bias is None:
            return 0.0
        key = (id(bias), is_output)
        if key not in self._lengths:
            self._lengths[key] = vector_norm(bias, is_output)
        return self._lengths[key]

    def _activation(self, layer: Any, x: Input) -> BoundedRows:
        rows = self._rows(x)
        activation = _activation_of(layer)
        bounds = bound.after_activation(rows.bounds, activation, rows.width, self.precision)
        values = rows.values.clone() if getattr(layer, "inplace", False) else rows.values
        return BoundedRows(layer(values), bounds)

    def _identity(self, layer: Any, x: Input) -> BoundedRows:
        if layer.training and not isinstance(layer, nn.Identity):
            raise NotBoundedError("Dropout in training mode")
        return self._rows(x)

    def _layer_norm(self, layer: Any, x: Input) -> BoundedRows:
        rows = self._rows(x)
        weight, bias = layer.weight, layer.bias
        settings = bound.NormSettings(
            weight=1.0 if weight is None else vector_norm(weight, is_output=True),
            bias=self._length(bias, is_output=False),
            eps=float(layer.eps),
        )
        if getattr(layer, "mode", "node") != "node" or settings.eps < 2.0**-60:
            raise NotBoundedError("LayerNorm")
        statistics = bound.RowStatistics.of(rows.values)
        bounds = bound.after_layer_norm(rows.bounds, statistics, settings, rows.width, self.precision)
        # Two passes, as in the proof.
        centered = rows.values - rows.values.mean(dim=1, keepdim=True)
        variance = centered.square().mean(dim=1, keepdim=True)
        values = centered / torch.sqrt(variance + layer.eps)
        values = values if weight is None else values * weight
        values = values if bias is None else values + bias
        return BoundedRows(values, bounds)

    def _batch_norm(self, layer: Any, x: Input) -> BoundedRows:
        rows = self._rows(x)
        norm = layer.module if isinstance(layer, pyg.BatchNorm) else layer
        if norm.training or norm.running_mean is None or norm.eps < 2.0**-60:
            raise NotBoundedError("BatchNorm without fixed statistics")
        factor = (norm.running_var.double() + norm.eps).rsqrt()
        factor = factor if norm.weight is None else factor * norm.weight.double()
        shift = vector_norm(factor * norm.running_mean.double(), is_output=False)
        shift += self._length(norm.bias, is_output=False)
        largest = vector_norm(factor, is_output=True)
        bounds = bound.after_affine(self._observed(rows), largest * UP, shift * UP, rows.width, self.precision)
        values = (rows.values - norm.running_mean) * factor.to(self.precision.dtype)
        values = values if norm.bias is None else values + norm.bias
        return BoundedRows(values, bounds)

    def _scaled(self, layer: Any, x: Input) -> BoundedRows:
        """Evaluates ``Scaling``, which comes first, so that each entry of its output has a small relative error."""
        _require(isinstance(x, FeatureRows), "Scaling within a model")
        rows = self._rows(x)
        values = layer(rows.values)
        factor = vector_norm(1 / layer.spread.double(), is_output=True)
        length = values.double().norm(dim=1) * UP
        bounds = bound.after_affine(
            Bounds(length, rows.bounds.error * factor * UP), 1.0, 0.0, rows.width, self.precision
        )
        return BoundedRows(values, Bounds(length + bounds.error, bounds.error * max(1.0, factor)))

    # Layers joined

    def _added(self, left: BoundedRows, right: BoundedRows) -> BoundedRows:
        bounds = bound.after_sum([left.bounds, right.bounds], self.precision.unit, left.width, self.precision)
        return BoundedRows(left.values + right.values, bounds)

    def _jump(self, mode: str, outputs: list[Any]) -> BoundedRows:
        rows = [self._rows(output) for output in outputs]
        bounds = bound.joined([output.bounds for output in rows])
        if mode == "last":
            return rows[-1]
        if mode == "cat":
            return BoundedRows(torch.cat([output.values for output in rows], dim=-1), bounds)
        return BoundedRows(torch.stack([output.values for output in rows]).amax(dim=0), bounds)

    def _readout(self, name: str, rows: BoundedRows, batch: Tensor) -> BoundedRows:
        count = torch.bincount(batch)
        starts = torch.cumsum(count, 0) - count
        values = gnn.READOUTS[name](rows.values, batch)
        members = torch.arange(len(batch))
        size, error = self._observed(rows)
        if name == "max":
            squares = F.embedding_bag(members, torch.stack([size, error], dim=1).square(), starts, mode="sum")
            root = squares.sqrt() * UP
            return BoundedRows(values, Bounds(root[:, 0], root[:, 1]))
        total = F.embedding_bag(members, torch.stack([size, error], dim=1), starts, mode="sum") * UP
        if name == "mean":
            total = total / count[:, None]
        return BoundedRows(
            values, bound.after_readout(Bounds(total[:, 0], total[:, 1]), count, rows.width, self.precision)
        )

    # Layers that send messages

    def _convolution(self, layer: Any, x: Input, edges: Edges, is_output: bool) -> Exchange:
        """Evaluates a layer of a stack."""
        if type(layer) is pyg.GCNConv:
            sums, sent, width = self._gcn_begun(layer, x, edges, is_output)
            outbox = [sent]
            del x, sent  # while other rows are computed, they would take memory
            received = yield outbox.pop()
            return self._gcn_ended(layer, sums, received, width, is_output)
        if type(layer) in (pyg.SAGEConv, gnn.ProjectedSAGEConv):
            return (yield from self._sage(layer, x, edges, is_output))
        if type(layer) in (pyg.GINConv, gnn.ProjectedGINConv):
            return (yield from self._gin(layer, x, edges, is_output))
        if type(layer) is gnn.RelationalConv:
            return self._relational(layer, x, edges, is_output)
        if type(layer) is pyg.GATConv:
            return self._attention(layer, x, edges, is_output)
        if isinstance(layer, pyg.MessagePassing):
            raise NotBoundedError(type(layer).__name__)
        return self._layer(layer, x, is_output)

    def _gcn_begun(self, layer: Any, x: Input, edges: Edges, is_output: bool) -> tuple["GcnSums", Sent, int]:
        """Returns the sums of a layer, what its rows send, and the number of entries of a row."""
        _require(type(layer.aggr_module) is pyg.SumAggregation, "GCNConv")
        sums = edges.normalised
        if layer.normalize:
            _require(not layer.improved, "GCNConv(improved=True)")
            sums = self._gcn_sums(edges, add_loops=layer.add_self_loops)
        _require(sums is not None, "GCNConv(normalize=False)")
        assert sums is not None
        projected = self._product(layer.lin.weight, x, is_output)
        return sums, sums.sent(projected), _width(projected, is_output)

    def _gcn_ended(self, layer: Any, sums: "GcnSums", received: Received, width: int, is_output: bool) -> BoundedRows:
        """Returns the rows of a layer from what all rows sent."""
        values = sums.total(received)
        values = values if layer.bias is None else values.add_(layer.bias)
        bias = self._length(layer.bias, is_output)
        bounds = bound.after_sum([sums.spread(received)], sums.relative, width, self.precision, bias)
        if sums.is_unbounded is not None:
            bounds = bounds._replace(error=bounds.error.masked_fill(sums.is_unbounded, torch.inf))
        return BoundedRows(values, bounds)

    def _gcn_sums(self, edges: Edges, add_loops: bool) -> "GcnSums":
        """Returns what ``gcn_norm`` divides by, computed in float64."""
        weight = edges.values.get("edge_weight")
        if weight is None:
            arcs = edges.arcs_without_loops if add_loops else edges.arcs
            return GcnSums.without_weights(arcs, add_loops, self.precision)
        _require(weight.dim() == 1, "GCNConv with several weights for each edge")
        return GcnSums.with_weights(edges.edge_index, weight, edges.arcs.num_rows, add_loops, self.precision)

    def _sage(self, layer: Any, x: Input, edges: Edges, is_output: bool) -> Exchange:
        is_plain = not layer.normalize and not layer.project and type(layer.aggr_module) is pyg.MeanAggregation
        _require(is_plain, "SAGEConv")
        arcs = edges.arcs
        sent = self._product(layer.lin_l.weight, x, is_output)
        width = _width(sent, is_output)
        outbox = [Sent.of(sent.values, sent.bounds)]
        del sent  # while other rows are computed, it would take memory
        _, everyone = yield outbox.pop()
        divisor = arcs.degree.clamp(min=1)
        values = arcs.total(everyone.values).div_(divisor[:, None])
        parts = [bound.scaled(arcs.spread(everyone.bounds), 1 / divisor.double())]
        if layer.lin_l.bias is not None:
            values = values.add_(layer.lin_l.bias)
        if layer.root_weight:
            own = self._linear(layer.lin_r, x, is_output)
            values = values.add_(own.values)
            parts.append(own.bounds)
        bias = self._length(layer.lin_l.bias, is_output)
        bounds = bound.after_sum(parts, arcs.relative(7, self.precision), width, self.precision, bias)
        return BoundedRows(values, bounds)

    def _gin(self, layer: Any, x: Input, edges: Edges, is_output: bool) -> Exchange:
        """Bounds a GIN layer: ``(1 + eps) x + sum of neighbours``, then a network whose first product comes first here.

        It yields the rows that it sends along edges, and is given those of all nodes.
        """
        _require(type(layer.aggr_module) is pyg.SumAggregation, "GINConv")
        arcs = edges.arcs
        first, rest = _first_linear(layer.nn)
        rows = self._rows(x) if first is None else self._product(first.weight, x, is_output=False)
        _, everyone = yield Sent.of(rows.values, rows.bounds)
        factor = 1 + layer.eps.double()
        values = arcs.total(everyone.values).addcmul_(factor.to(self.precision.dtype), rows.values)
        parts = [arcs.spread(everyone.bounds), bound.scaled(rows.bounds, float(factor.abs()) * UP)]
        bias = 0.0
        if first is not None and first.bias is not None:
            values = values.add_(first.bias)
            bias = self._length(first.bias, is_output=False)
        bounds = bound.after_sum(parts, arcs.relative(7, self.precision), rows.width, self.precision, bias)
        return rest(self, BoundedRows(values, bounds), is_output)

    def _relational(self, layer: Any, x: Input, edges: Edges, is_output: bool) -> BoundedRows:
        arcs = edges.arcs
        attribute = arcs.sorted(edges.values["edge_attr"]).double()
        total = arcs.degree.new_zeros(arcs.num_rows, attribute.size(1), dtype=torch.float64)
        total.index_add_(0, arcs.head, attribute.abs())
        # Shares of almost nothing are not bounded: the model itself divides by a number that depends on the precision.
        is_small = ((total > 0) & (total < LEAST_TOTAL)).any(dim=1)
        share = attribute / torch.where(total > 0, total, 1.0)[arcs.head]
        out = self._linear(layer.lin, x, is_output)
        values, parts = out.values, [out.bounds]
        for column, relation in enumerate(layer.relations):
            sent = self._product(relation.weight, x, is_output)
            weight = share[:, column].contiguous()
            values = values + arcs.total(sent.values, weight.to(self.precision.dtype))
            parts.append(arcs.spread(Sent.of(sent.values, sent.bounds).bounds, weight.abs() * UP))
        relative = bound.gamma(2 * arcs.degree + len(layer.relations) + 8, self.precision)
        bounds = bound.after_sum(parts, relative, _width(out, is_output), self.precision)
        bounds = bounds._replace(error=bounds.error.masked_fill(is_small, torch.inf))
        return BoundedRows(values, bounds)

    def _attention(self, layer: Any, x: Input, edges: Edges, is_output: bool) -> BoundedRows:
        """Evaluates attention. Its bounds grow too fast to say anything in float32."""
        _require(self.precision is DOUBLE, "GATConv in float32")
        is_plain = layer.lin is not None and layer.lin.bias is None and layer.edge_dim is None and layer.res is None
        _require(is_plain and 0 <= layer.negative_slope <= 1 and not layer.training, "GATConv")
        _require(type(layer.aggr_module) is pyg.SumAggregation, "GATConv")
        if id(layer) not in self._heads:
            self._heads[id(layer)] = head_norms(layer)
        given = AttentionInput(
            projected=self._product(layer.lin.weight, x, is_output=False),
            bounds=x.bounds if isinstance(x, BoundedRows) else None,
            width=layer.lin.weight.size(1),
        )
        return attention(layer, self._heads[id(layer)], given, edges.arcs, is_output, self.precision)


class GcnSums(NamedTuple):
    """Sums over neighbours, each divided by the roots of the in-degrees at both ends.

    Attributes:
        arcs: The edges, with loops if they have weights.
        scale: Where no edge has a weight: one over the root of the in-degree of each row, loop included, float64.
        has_loops: Where no edge has a weight: whether each row also gets what it sends itself.
        weight: Else the weight of each edge, divided by both roots, float64.
        relative: ``gamma`` of how many operations any term of a sum goes through.
        dtype: Type of the rows.
        is_unbounded: Rows whose sums are not bounded, because a weight is negative, tiny or huge; ``None`` if there are
            none. In-degrees are sums of weights.
    """

    arcs: Arcs
    scale: Tensor
    has_loops: bool
    weight: Tensor | None
    relative: Tensor
    dtype: torch.dtype
    is_unbounded: Tensor | None = None

    @classmethod
    def without_weights(cls, arcs: Arcs, add_loops: bool, precision: Precision) -> "GcnSums":
        """Follows ``gcn_norm``.

        Args:
            arcs: The edges, without loops if loops are added.
            add_loops: Whether each row also gets what it sends itself.
            precision: How sums are rounded.
        """
        degree = arcs.degree + 1 if add_loops else arcs.degree
        scale = torch.where(degree > 0, degree.double().rsqrt(), 0.0)
        return cls(arcs, scale, add_loops, None, arcs.relative(13, precision), precision.dtype)

    @classmethod
    def with_weights(
        cls, edge_index: Tensor, edge_weight: Tensor, num_rows: int, add_loops: bool, precision: Precision
    ) -> "GcnSums":
        """Follows ``gcn_norm``."""
        weight = edge_weight.double()
        if add_loops:
            edge_index, weight = add_remaining_self_loops(edge_index, weight, 1.0, num_rows)
        arcs = Arcs.of(edge_index, num_rows)
        weight = arcs.sorted(weight)
        is_unbounded = _reached_by_odd_weights(arcs, weight)
        total = torch.zeros(num_rows, dtype=torch.float64).index_add_(0, arcs.head, weight)
        scale = torch.where(total > 0, total.rsqrt(), 0.0)
        weight = scale[arcs.source] * weight * scale[arcs.head]
        # In-degrees are sums in float64. Where all is in float64, they are as wrong as any sum of their terms.
        relative = arcs.relative(arcs.most + 14, precision)
        return cls(arcs, scale, False, weight, relative, precision.dtype, is_unbounded)

    def sent(self, projected: BoundedRows) -> Sent:
        """Returns what rows send. The projected rows are written to."""
        if self.weight is not None:
            return Sent.of(projected.values, projected.bounds)
        return Sent.of(projected.values.mul_(self._scale_of_values()), projected.bounds, self.scale * UP)

    def total(self, received: Received) -> Tensor:
        """Returns the sums of rows."""
        if self.weight is not None:
            return self.arcs.total(received.all.values, self.weight.to(self.dtype))
        sums = self.arcs.total(received.all.values)
        if self.has_loops:
            sums.add_(received.own.values)
        return sums.mul_(self._scale_of_values())

    def spread(self, received: Received) -> Bounds:
        """Returns the sums of bounds."""
        if self.weight is not None:
            return self.arcs.spread(received.all.bounds, self.weight * UP)
        own = received.own.bounds if self.has_loops else None
        return bound.scaled(self.arcs.spread(received.all.bounds, own=own), self.scale)

    def _scale_of_values(self) -> Tensor:
        return self.scale[:, None].to(self.dtype)


def _reached_by_odd_weights(arcs: Arcs, weight: Tensor) -> Tensor | None:
    """Returns the rows with an odd weight among the edges to them, or to a row that sends to them; ``None`` if none."""
    is_odd = ~(((weight >= LEAST_WEIGHT) & (weight <= LARGEST_WEIGHT)) | (weight == 0))
    if not bool(is_odd.any()):
        return None
    has_odd = torch.zeros(arcs.num_rows, dtype=torch.bool)
    has_odd[arcs.head[is_odd]] = True
    reached = has_odd.clone()
    reached[arcs.head[has_odd[arcs.source]]] = True
    return reached


def _all_rows(x: Tensor) -> tuple[Features, Tensor]:
    return Features(x), torch.arange(x.size(0))


def _require(condition: bool, name: str) -> None:
    if not condition:
        raise NotBoundedError(name)


def _width(rows: BoundedRows, is_output: bool) -> int:
    """Returns the number of entries whose errors add up in the norm that is used."""
    return 1 if is_output else rows.width


Rest = Callable[[BoundedModel, BoundedRows, bool], BoundedRows]


def _first_linear(network: Any) -> tuple[Any, Rest]:
    """Splits a network into its first linear layer, ``None`` if it begins otherwise, and a function for the rest."""
    if type(network) in (nn.Linear, pyg.Linear):
        return network, lambda model, rows, is_output: rows
    if isinstance(network, nn.Sequential) and len(network) > 1 and type(network[0]) in (nn.Linear, pyg.Linear):
        rest = nn.Sequential(*list(network)[1:])
        return network[0], lambda model, rows, is_output: model._layer(rest, rows, is_output)
    return None, lambda model, rows, is_output: model._layer(network, rows, is_output)


def _activation_of(layer: Any) -> Activation:
    """Returns what is known about an activation."""
    kind = type(layer)
    if kind is nn.ReLU or layer in (F.relu, torch.relu):
        return bound.RELU
    if kind is nn.LeakyReLU and 0 <= layer.negative_slope <= 1:
        return bound.LEAKY_RELU
    if kind is nn.ELU and 0 <= layer.alpha <= 1:
        return bound.ELU
    if kind is nn.GELU and layer.approximate == "none":
        return bound.GELU
    if kind is nn.SiLU or layer is F.silu:
        return bound.SILU
    if kind is nn.Tanh or layer in (F.tanh, torch.tanh):
        return bound.TANH
    raise NotBoundedError(kind.__name__)


# Layers in which a row reads nothing of the others but what they send.
_SENDING = {pyg.GCNConv, pyg.SAGEConv, gnn.ProjectedSAGEConv, pyg.GINConv, gnn.ProjectedGINConv}

_OF_ROWS: dict[type, Callable[[BoundedModel, Any, Input], BoundedRows]] = {
    nn.Identity: BoundedModel._identity,
    nn.Dropout: BoundedModel._identity,
    gnn.Dropout: BoundedModel._identity,
    nn.LayerNorm: BoundedModel._layer_norm,
    pyg.LayerNorm: BoundedModel._layer_norm,
    nn.BatchNorm1d: BoundedModel._batch_norm,
    pyg.BatchNorm: BoundedModel._batch_norm,
    Scaling: BoundedModel._scaled,
}
