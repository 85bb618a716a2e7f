"""``X[rows]`` that is not evaluated until a layer has projected it.

In the union of all subgraphs a node appears many times with the same features. A model whose first step is
linear then repeats the same wide product for every copy. ``LazyRows`` stands in for the copied features:
``linear(X[rows])`` is computed as ``linear(X)[rows]``, once per node, whatever module asks for it. Any other
operation sees ordinary copied features.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_is_leaf, tree_map

from agnncert.engine.rounding_noise import RoundingNoise, random_signs
from agnncert.graphs.targets import Entries


class Features:
    """The feature matrix of a graph, with its projections remembered for as long as this object lives.

    Args:
        x: Features, shape ``[num_nodes, num_features]``.
        sparse: A ``SparseRows`` of the same matrix, if it has been made before.
        cut: Training in several backward passes: gradients stop at the projections and are collected there,
            until ``finish_backward`` sends them on to the weights, once.
        noise: Moves entries and products by a few units of rounding.
        device: Where rows and projections are wanted; where ``x`` is when not given. The matrix itself stays where it
            is, and travels there in blocks.
        most_kept: Bytes that a projection may take to be kept for all chunks; else each chunk projects its own rows.
            When not given, only shaken ones of millions of rows are not kept.
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
        self.device = x.device if device is None else device
        self.most_kept = most_kept
        self._elsewhere: dict[torch.device, Features] = {}
        self.noise = noise
        self._noisy: dict[RoundingNoise, Features] = {}
        self._with_blank: Features | None = None
        self._projected: dict[tuple[int, int, bool], tuple[Tensor, Tensor | None, Tensor, Tensor]] = {}

    def rows(self, index: Tensor, blank: Tensor | None = None) -> Tensor:
        """``x[index]``, with rows of zeros where ``blank``."""
        if blank is not None:
            # Blank rows are one more row of the matrix, all zeros, which is projected like the others (to the bias).
            return self._padded().rows(torch.where(blank, self.x.size(0), index))
        return LazyRows(self, index)

    def _padded(self) -> "Features":
        if self._with_blank is None:
            padded = torch.cat([self.x, self.x.new_zeros(1, self.x.size(1))])
            sparse = None if self.sparse is None else SparseRows(padded)
            self._with_blank = Features(padded, sparse, self.cut, device=self.device)
        return self._with_blank

    def copy(self, index: Tensor) -> Tensor:
        """``x[index]`` as an ordinary tensor of its own."""
        return self._entries.index_select(0, index.to(self.x.device)).to(self.device)

    def on(self, device: torch.device) -> "Features":
        """The same matrix, with rows and projections on another device."""
        if device == self.device:
            return self
        if device not in self._elsewhere:
            self._elsewhere[device] = Features(self.x, self.sparse, self.cut, self.noise, device, self.most_kept)
        return self._elsewhere[device]

    @cached_property
    def _entries(self) -> Tensor:
        return self.x if self.noise is None else self.noise.perturb_table(self.x)

    def with_noise(self, noise: RoundingNoise) -> "Features":
        """The same matrix, and its products with any weight, moved by a few units of rounding."""
        if noise not in self._noisy:
            self._noisy[noise] = Features(
                self.x, self.sparse, noise=noise, device=self.device, most_kept=self.most_kept
            )
        return self._noisy[noise]

    def project(self, weight: Tensor, bias: Tensor | None = None, transposed: bool = False) -> Tensor:
        """``linear(x)``, or ``x @ weight`` if ``transposed``; computed once per weight."""
        key = (id(weight), id(bias), transposed)
        if key not in self._projected:
            # Weight and bias are kept with the result: as long as they live, no other tensor can get their id().
            product = self._linear(weight.t() if transposed else weight, bias)
            leaf = product.detach().requires_grad_(product.requires_grad) if self.cut else product
            self._projected[key] = (weight, bias, product, leaf)
        return self._projected[key][3]

    def projected(self, index: Tensor, weight: Tensor, bias: Tensor | None = None, transposed: bool = False) -> Tensor:
        """Rows of :meth:`project`, which is kept if that is not too large."""
        weights = weight.t() if transposed else weight
        if self._keeps(weights.size(0)):
            return self.project(weight, bias, transposed).index_select(0, index)
        return self._linear(weights, bias, index)

    def _keeps(self, width: int) -> bool:
        if self.sparse is not None or self.cut or self.device != self.x.device:
            return True
        if self.most_kept is not None:
            return self.x.size(0) * width * self.x.element_size() <= self.most_kept
        return self.noise is None or self.x.size(0) <= MOST_KEPT_NOISY

    def finish_backward(self) -> None:
        """Sends the gradients collected at the projections on to the weights."""
        for _, _, product, leaf in self._projected.values():
            if leaf.grad is not None:
                product.backward(leaf.grad)  # type: ignore[no-untyped-call]
        for other in (self._with_blank, *self._elsewhere.values()):
            if other is not None:
                other.finish_backward()

    def _linear(self, weight: Tensor, bias: Tensor | None, index: Tensor | None = None) -> Tensor:
        if self.noise is not None:
            # Moving the weight moves every term of the product, and costs less than to move every entry of x.
            moved, sign = self.noise.perturb_all(weight), self._row_signs
            if index is None:
                product = self._plain_linear(moved, None)
            else:
                product, sign = F.linear(self.x.index_select(0, index), moved), sign.index_select(0, index)
            product *= 1 + self.noise.by * sign[:, None].to(product)
            return product if bias is None else product.add_(bias)
        if index is not None:
            return F.linear(self.x.index_select(0, index), weight, bias)
        return self._plain_linear(weight, bias)

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


MOST_KEPT_NOISY = 2**20  # rows of a shaken projection that are kept: the plain one takes memory enough
ROWS_THAT_TRAVEL = 2**16  # to another device, at a time


class SparseRows:
    """A matrix in compressed rows (and, once a gradient is asked for, columns)."""

    def __init__(self, x: Tensor, entries: Entries | None = None) -> None:
        """From a matrix and, if they are known, its entries that are not zero."""
        self._x = x
        self.rows = _compressed(x, entries or Entries.all_of(x))

    @cached_property
    def columns(self) -> Tensor:
        """The transposed matrix in compressed rows."""
        turned = self._x.t().contiguous()
        return _compressed(turned, Entries.all_of(turned))

    @classmethod
    def of(cls, x: Tensor, entries: Entries | None = None) -> "SparseRows | None":
        """The compressed form, or ``None`` when ``x`` is too dense to gain from it."""
        entries = entries or Entries.of(x)
        return cls(x, entries) if entries.few else None

    def times(self, right: Tensor) -> Tensor:
        """``x @ right``, differentiable in ``right``."""
        return cast(Tensor, _SparseTimes.apply(self, right))  # type: ignore[no-untyped-call]


def _compressed(x: Tensor, entries: Entries) -> Tensor:
    places, values = entries.place, entries.value.to(x.device)
    row, column = np.divmod(places, max(1, x.size(1)))
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=x.size(0)))])
    starts, columns = (torch.from_numpy(part).to(x.device) for part in (start, column))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls its compressed rows a beta feature
        return torch.sparse_csr_tensor(starts, columns, values, x.shape, check_invariants=False)


class _SparseTimes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: SparseRows, right: Tensor) -> Tensor:
        ctx.matrix = matrix
        return matrix.rows @ right

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        return None, ctx.matrix.columns @ grads[0]


class StandIn(Tensor):
    """A tensor with shape and type but no numbers, until an operation asks for them."""

    _given_away: bool = False

    def copied(self) -> Tensor:
        """The numbers."""
        raise NotImplementedError

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Operations that reach the tensor core without passing ``__torch_function__`` see numbers."""
        return on_copies(func, args, kwargs or {})


class LazyRows(StandIn):
    """A stand-in for ``features.x[index]`` that modules cannot describe_error from a tensor."""

    features: Features
    index: Tensor  # type: ignore[assignment]  # hides Tensor.index, which nothing calls
    _copied: Tensor | None

    @staticmethod
    def __new__(cls, features: Features, index: Tensor) -> "LazyRows":
        """A tensor with shape and type but no storage."""
        shape = (index.numel(), features.x.size(1))
        rows: LazyRows = Tensor._make_wrapper_subclass(cls, shape, dtype=features.x.dtype, device=features.device)
        rows.features, rows.index, rows._copied = features, index.to(features.device), None
        return rows

    def on(self, device: torch.device) -> "LazyRows":
        """The same rows on another device."""
        return self if device == self.features.device else LazyRows(self.features.on(device), self.index)

    def copied(self) -> Tensor:
        """The rows themselves."""
        if self._copied is None:
            self._copied = self.features.copy(self.index)
        return self._copied

    def written(self) -> bool:
        """Whether the copied rows may have been written to, so that they are no longer those of the matrix."""
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


def on_copies(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What a function makes of the numbers that its arguments stand for."""
    used: list[StandIn] = []

    def plain(value: Any) -> Any:
        if not isinstance(value, StandIn):
            return value
        used.append(value)
        return value.copied()

    if not all(map(tree_is_leaf, (*args, *kwargs.values()))):  # rare, and slow
        args, kwargs = tree_map(plain, (args, kwargs))
    result = func(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})
    for rows in used:
        rows._given_away |= func is Tensor.data_ptr or _shares_memory(result, rows.copied())
    return result


def _shares_memory(result: Any, copied: Tensor) -> bool:
    """Whether ``result`` may share memory with the copied rows: writes to it, as to ``x.data``, are not counted."""
    if isinstance(result, Tensor):
        if result.layout != torch.strided:
            return False
        try:
            return result.untyped_storage().data_ptr() == copied.untyped_storage().data_ptr()
        except (RuntimeError, NotImplementedError):  # inside a transformation of torch.func
            return True
    if isinstance(result, tuple | list):
        return any(_shares_memory(part, copied) for part in result if not isinstance(part, bool | int | float | list))
    return not isinstance(result, bool | int | float | str | torch.dtype | torch.device | None)


def _project(func: Callable[..., Any], args: Any, kwargs: Any) -> Tensor | None:
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
    """Whether a weight outlives the call; products with weights that are computed anew in every call are not kept."""
    return isinstance(weight, torch.nn.Parameter)


_PRODUCTS = {Tensor.matmul, Tensor.__matmul__, Tensor.mm, torch.matmul, torch.mm}
_METHODS = (Tensor.size, Tensor.dim, Tensor.numel, Tensor.is_floating_point, Tensor.__len__, Tensor.get_device)
_STORAGE = ("is_cuda", "is_sparse", "is_sparse_csr", "is_quantized")
_PROPERTIES = ("shape", "dtype", "device", "layout", "ndim", "requires_grad", *_STORAGE)
ABOUT_SHAPE_AND_TYPE = {*_METHODS, *(getattr(Tensor, name).__get__ for name in _PROPERTIES)}
