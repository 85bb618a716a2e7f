"""``X[rows]`` that is not evaluated until a layer has projected it.

In the union of all subgraphs a node appears many times with the same features. A model whose first step is linear then
repeats the same wide product for every copy. ``LazyRows`` stands in for the copied features: ``linear(X[rows])`` is
computed as ``linear(X)[rows]``, once per node, whatever module asks for it. Any other operation sees ordinary copied
features.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from agnncert.engine.bounded_rows import BoundedRows, project_rows, rounded_rows
from agnncert.engine.error_bounds import DOUBLE, Precision, WeightNorms
from agnncert.engine.rounding_noise import RoundingNoise, random_signs
from agnncert.engine.stand_in import ABOUT_SHAPE_AND_TYPE, StandIn, on_copies
from agnncert.graphs.entries import Entries

MOST_NOISY_ROWS_KEPT = 2**20  # rows of a noisy projection that is kept: the plain one takes memory enough
MOST_DOUBLES_KEPT = 2**22  # numbers of a projection in float64 that is kept: few rows need it
ROWS_THAT_TRAVEL = 2**16  # rows that are brought to another device at a time
_PRODUCTS = {Tensor.matmul, Tensor.__matmul__, Tensor.mm, torch.matmul, torch.mm}


class Projection(NamedTuple):
    """A product of the feature matrix with a weight.

    Attributes:
        weight: The weight. As long as it is kept here, no other tensor can get its ``id()``.
        bias: The bias, likewise.
        transposed: Whether the product is ``x @ weight`` instead of ``linear(x)``.
        product: The product.
        leaf: What callers get: the product, or a leaf of its own at which gradients are collected.
    """

    weight: Tensor
    bias: Tensor | None
    transposed: bool
    product: Tensor
    leaf: Tensor


class BoundedProjection(NamedTuple):
    """A product of the feature matrix with a weight, with bounds on its errors.

    Attributes:
        weight: The weight. As long as it is kept here, no other tensor can get its ``id()``.
        norms: Its norms.
        precision: What it was rounded to.
        rows: The product and its bounds.
    """

    weight: Tensor
    norms: WeightNorms
    precision: Precision
    rows: BoundedRows


class Features:
    """The feature matrix of a graph, with its projections remembered for as long as this object lives.

    Args:
        x: Features, shape ``[num_nodes, num_features]``.
        sparse: A ``SparseRows`` of the same matrix, if it has been made before.
        cut: Whether the model is trained in several backward passes. Gradients then stop at the projections and are
            collected there until ``finish_backward`` sends them on to the weights, once.
        noise: Moves entries and products by a few units of rounding; nothing is moved by default.
        device: Where rows and projections are wanted. Defaults to the device of ``x``. The matrix itself stays where
            it is, and travels to the device in blocks.
        most_kept: Bytes that a projection may take to be kept for all chunks; if it takes more, each chunk projects its
            own rows. By default all projections are kept, except noisy ones of more than ``MOST_NOISY_ROWS_KEPT`` rows.
    """

    def __init__(
        self,
        x: Tensor,
        sparse: "SparseRows | None" = None,
        cut: bool = False,
        noise: RoundingNoise | None = None,
        device: torch.device | None = None,
        most_kept: int | None = None,
    ) -> None:
        self.x = x
        self.sparse = sparse
        self.cut = cut
        self.noise = noise
        self.device = x.device if device is None else device
        self.most_kept = most_kept
        self._elsewhere: dict[torch.device, Features] = {}
        self._noisy: dict[RoundingNoise, Features] = {}
        self._with_blank: Features | None = None
        self._projections: dict[tuple[int, int, bool], Projection] = {}
        self._bounded: dict[tuple[int, bool, torch.dtype], BoundedProjection] = {}

    def rows(self, index: Tensor, blank: Tensor | None = None) -> Tensor:
        """Returns a stand-in for ``x[index]``, with rows of zeros where ``blank``."""
        if blank is None:
            return LazyRows(self, index)
        # Blank rows are one more row of the matrix, all zeros, which is projected like the others (to the bias).
        return self._padded().rows(torch.where(blank, self.x.size(0), index))

    def _padded(self) -> "Features":
        """Returns the same matrix with a row of zeros at its end."""
        if self._with_blank is None:
            padded = torch.cat([self.x, self.x.new_zeros(1, self.x.size(1))])
            sparse = None if self.sparse is None else SparseRows(padded)
            self._with_blank = Features(padded, sparse, self.cut, device=self.device)
        return self._with_blank

    def copy(self, index: Tensor) -> Tensor:
        """Returns ``x[index]`` as an ordinary tensor of its own."""
        return self._entries.index_select(0, index.to(self.x.device)).to(self.device)

    def on(self, device: torch.device) -> "Features":
        """Returns the same matrix, with rows and projections on another device."""
        if device == self.device:
            return self
        if device not in self._elsewhere:
            self._elsewhere[device] = Features(self.x, self.sparse, self.cut, self.noise, device, self.most_kept)
        return self._elsewhere[device]

    @cached_property
    def _entries(self) -> Tensor:
        return self.x if self.noise is None else self.noise.perturb_table(self.x)

    def with_noise(self, noise: RoundingNoise) -> "Features":
        """Returns the same matrix, with its entries and its products with any weight moved by rounding noise."""
        if noise not in self._noisy:
            self._noisy[noise] = Features(
                self.x, self.sparse, noise=noise, device=self.device, most_kept=self.most_kept
            )
        return self._noisy[noise]

    def project(self, weight: Tensor, bias: Tensor | None = None, transposed: bool = False) -> Tensor:
        """Returns ``linear(x)``, or ``x @ weight`` if ``transposed``; it is computed once per weight."""
        key = (id(weight), id(bias), transposed)
        if key not in self._projections:
            product = self._linear(weight.t() if transposed else weight, bias)
            leaf = product.detach().requires_grad_(product.requires_grad) if self.cut else product
            self._projections[key] = Projection(weight, bias, transposed, product, leaf)
        return self._projections[key].leaf

    def projected(self, index: Tensor, weight: Tensor, bias: Tensor | None = None, transposed: bool = False) -> Tensor:
        """Returns rows of the product with a weight; the whole product is computed and kept if it is small enough."""
        weights = weight.t() if transposed else weight
        if self._keeps(weights.size(0)):
            return self.project(weight, bias, transposed).index_select(0, index)
        return self._linear(weights, bias, index)

    def _keeps(self, width: int) -> bool:
        """Tells whether a projection of this many columns is kept."""
        if self.sparse is not None or self.cut or self.device != self.x.device:
            return True
        if self.most_kept is not None:
            return self.x.size(0) * width * self.x.element_size() <= self.most_kept
        return self.noise is None or self.x.size(0) <= MOST_NOISY_ROWS_KEPT

    def bounded_projection(
        self, index: Tensor, weight: Tensor, norms: WeightNorms, precision: Precision
    ) -> BoundedRows:
        """Returns rows of ``x @ weight.t()`` with bounds on their errors; it is computed once per weight, in float64.

        Args:
            index: Which rows.
            weight: The weight.
            norms: Its norms.
            precision: What products are rounded to.
        """
        keeps_double = self.x.size(0) * weight.size(0) <= MOST_DOUBLES_KEPT
        if not self._keeps(weight.size(0)) or (precision is DOUBLE and not keeps_double):
            return project_rows(self.x.index_select(0, index), None, weight, norms, precision)
        key = (id(weight), norms.is_maximum, precision.dtype)
        if key not in self._bounded:
            self._bounded[key] = BoundedProjection(
                weight, norms, precision, self._bounded_product(weight, norms, precision, keeps_double)
            )
        return self._bounded[key].rows.select(index)

    def _bounded_product(
        self, weight: Tensor, norms: WeightNorms, precision: Precision, keeps_double: bool
    ) -> BoundedRows:
        """Computes ``x @ weight.t()`` with bounds on its errors. Float32 and float64 share it if it is kept."""
        compressed = None if self.sparse is None else self.sparse.rows
        if not keeps_double:
            return project_rows(self.x, compressed, weight, norms, precision)
        double_key = (id(weight), norms.is_maximum, DOUBLE.dtype)
        if double_key not in self._bounded:
            product = project_rows(self.x, compressed, weight, norms)
            self._bounded[double_key] = BoundedProjection(weight, norms, DOUBLE, product)
        return rounded_rows(self._bounded[double_key].rows, norms, precision)

    def finish_backward(self) -> None:
        """Sends the gradients collected at the projections on to the weights."""
        for projection in self._projections.values():
            if projection.leaf.grad is not None:
                projection.product.backward(projection.leaf.grad)  # type: ignore[no-untyped-call]
        for other in (self._with_blank, *self._elsewhere.values()):
            if other is not None:
                other.finish_backward()

    def _linear(self, weight: Tensor, bias: Tensor | None, index: Tensor | None = None) -> Tensor:
        """Computes ``linear(x)``, or some of its rows."""
        if self.noise is not None:
            return self._noisy_linear(self.noise, weight, bias, index)
        if index is not None:
            return F.linear(self.x.index_select(0, index), weight, bias)
        return self._plain_linear(weight, bias)

    def _noisy_linear(self, noise: RoundingNoise, weight: Tensor, bias: Tensor | None, index: Tensor | None) -> Tensor:
        # Moving the weight moves every term of the product, and costs less than moving every entry of x.
        moved_weight = noise.perturb_all(weight)
        if index is None:
            product = self._plain_linear(moved_weight, None)
            sign = self._row_signs
        else:
            product = F.linear(self.x.index_select(0, index), moved_weight)
            sign = self._row_signs.index_select(0, index)
        product *= 1 + noise.size * sign[:, None].to(product)
        return product if bias is None else product.add_(bias)

    @cached_property
    def _row_signs(self) -> Tensor:
        assert self.noise is not None
        return random_signs(self.x.size(0), self.noise.seed).to(torch.int8)

    def _plain_linear(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.device != self.x.device:
            blocks = torch.split(self.x, ROWS_THAT_TRAVEL)
            return torch.cat([F.linear(block.to(self.device), weight, bias) for block in blocks])
        if self.sparse is None:
            return F.linear(self.x, weight, bias)
        product = self.sparse.times(weight.t())
        return product if bias is None else product + bias


class SparseRows:
    """A matrix in compressed rows and, once a gradient is asked for, compressed columns.

    Args:
        x: The matrix.
        entries: Its entries that are not zero, if they are known. They are searched for by default.
    """

    def __init__(self, x: Tensor, entries: Entries | None = None) -> None:
        self._x = x
        self.rows = _compressed(x, entries or Entries.all_of(x))

    @cached_property
    def columns(self) -> Tensor:
        """The transposed matrix in compressed rows."""
        transposed = self._x.t().contiguous()
        return _compressed(transposed, Entries.all_of(transposed))

    @classmethod
    def of(cls, x: Tensor, entries: Entries | None = None) -> "SparseRows | None":
        """Returns the compressed form, or ``None`` if ``x`` is too dense to gain from it."""
        entries = entries or Entries.of(x)
        return cls(x, entries) if entries.is_sparse else None

    def times(self, right: Tensor) -> Tensor:
        """Returns ``x @ right``, differentiable in ``right``."""
        return cast(Tensor, _SparseTimes.apply(self, right))  # type: ignore[no-untyped-call]


def _compressed(x: Tensor, entries: Entries) -> Tensor:
    """Returns a matrix as a sparse tensor in compressed rows."""
    row, column = np.divmod(entries.position, max(1, x.size(1)))
    row_start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=x.size(0)))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls its compressed rows a beta feature
        return torch.sparse_csr_tensor(
            torch.from_numpy(row_start).to(x.device),
            torch.from_numpy(column).to(x.device),
            entries.value.to(x.device),
            x.shape,
            check_invariants=False,
        )


class _SparseTimes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: SparseRows, right: Tensor) -> Tensor:
        ctx.matrix = matrix
        return matrix.rows @ right

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        return None, ctx.matrix.columns @ grads[0]


class LazyRows(StandIn):
    """A stand-in for ``features.x[index]`` that modules cannot tell from a tensor."""

    features: Features
    index: Tensor  # type: ignore[assignment]  # hides Tensor.index, which nothing calls
    _copied: Tensor | None

    @staticmethod
    def __new__(cls, features: Features, index: Tensor) -> "LazyRows":
        """Makes a tensor with shape and type but no storage."""
        shape = (index.numel(), features.x.size(1))
        rows: LazyRows = Tensor._make_wrapper_subclass(cls, shape, dtype=features.x.dtype, device=features.device)
        rows.features = features
        rows.index = index.to(features.device)
        rows._copied = None
        return rows

    def on(self, device: torch.device) -> "LazyRows":
        """Returns the same rows on another device."""
        return self if device == self.features.device else LazyRows(self.features.on(device), self.index)

    def copied(self) -> Tensor:
        """Returns the rows themselves."""
        if self._copied is None:
            self._copied = self.features.copy(self.index)
        return self._copied

    def written(self) -> bool:
        """Tells whether the copied rows may have been written to, so that they are no longer those of the matrix."""
        if self._copied is None:
            return False
        return self._given_away or self._copied.is_inference() or self._copied._version > 0

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Runs an operation on the feature matrix, on the stand-in itself, or on copied rows.

        Projections work on the whole matrix, questions about shape and type on the stand-in, all else on copied rows.
        """
        kwargs = kwargs or {}
        if func in ABOUT_SHAPE_AND_TYPE:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        projected = _project(func, args, kwargs)
        return on_copies(func, args, kwargs) if projected is None else projected


def _project(func: Callable[..., Any], args: Any, kwargs: Any) -> Tensor | None:
    """Computes an operation from a projection of the whole matrix; ``None`` if it is no such operation."""
    if not args or not isinstance(args[0], LazyRows):
        return None
    x = args[0]
    if func is F.dropout and not kwargs.get("training", args[2] if len(args) > 2 else True):
        return x
    if x.written():
        return None
    if func is F.linear:
        weight = args[1] if len(args) > 1 else kwargs["weight"]
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        if _is_kept(weight) and (bias is None or _is_kept(bias)):
            return x.features.projected(x.index, weight, bias)
    if func in _PRODUCTS and len(args) == 2 and not kwargs and _is_kept(args[1]) and args[1].dim() == 2:
        return x.features.projected(x.index, args[1], transposed=True)
    return None


def _is_kept(weight: object) -> bool:
    """Tells whether a weight outlives the call: products with weights that each call computes anew are not kept."""
    return isinstance(weight, torch.nn.Parameter)
