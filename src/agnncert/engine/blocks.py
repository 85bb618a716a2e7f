"""Messages along edges that are never all in memory: gathered, scaled and summed some edges at a time.

Message passing copies the row of a node to each of its edges (``x.index_select(0, source)``), scales the copies, and
sums those of each head (``scatter_add_``). In a large subgraph the copies are the largest tensors by far, and to write
them to memory and read them back takes longer than to compute. ``Messages`` stands in for them until they are summed.
Then blocks of edges that stay in the processor's cache are gathered, scaled and added, in the order of the edges, so
that every sum is the same to the last bit. Any other operation sees ordinary copies.

Rows that are not copied yet must not change before they are. So messages wait only while operations run that are known
to write nowhere near them; before any other operation they are copied.
"""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from agnncert.engine.stand_in import ABOUT_SHAPE_AND_TYPE, StandIn, on_copies

LARGE = 2**22  # numbers of messages that are gathered in blocks: smaller ones stay in the cache anyway
BLOCK = 2**19  # numbers that are gathered at a time


class InBlocks(TorchFunctionMode):
    """While this is entered, large messages are summed in blocks. For calls that ask for no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[weakref.ref[Messages]] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Runs an operation: large messages are gathered later, and nothing that they need changes until then."""
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():  # which brings blocks of its own
            return func(*args, **kwargs)
        if func in _SELECTS and not kwargs and _is_large(*args):
            return self._wait(Messages(args[0], args[2]))
        if self._waiting and not self._leaves_alone(func, args, kwargs):
            self._copy_all()
        result = func(*args, **kwargs)
        return self._wait(result) if isinstance(result, Messages) else result

    def __exit__(self, *error: Any) -> None:
        """Turns all messages that still wait into ordinary tensors: the model may keep or return them."""
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._copy_all()

    def _wait(self, messages: "Messages") -> "Messages":
        self._waiting.append(weakref.ref(messages))
        return messages

    def _copy_all(self) -> None:
        for reference in self._waiting:
            messages = reference()
            if messages is not None:
                messages.copied()
        self._waiting.clear()

    def _leaves_alone(self, func: Callable[..., Any], args: Any, kwargs: Any) -> bool:
        """Tells whether a function writes to nothing that is still to be read."""
        if func is Tensor.scatter_add_:
            return self._shares_no_memory(args[0])
        return func in _WRITES_NOWHERE and "out" not in kwargs

    def _shares_no_memory(self, into: Tensor) -> bool:
        """Tells whether a tensor shares no memory with anything that is still to be read."""
        if type(into) is not Tensor:
            return False
        address = into.untyped_storage().data_ptr()
        for reference in self._waiting:
            messages = reference()
            if messages is None:
                continue
            if any(part.untyped_storage().data_ptr() == address for part in messages.parts()):
                return False
        return True


def _is_large(*args: Any) -> bool:
    """Tells whether ``index_select`` with these arguments gathers so much that it is worth doing in blocks."""
    if len(args) != 3 or not (type(args[0]) is Tensor and type(args[2]) is Tensor):
        return False
    rows, dim, index = args
    return (
        rows.dim() >= 2
        and dim in (0, -rows.dim())
        and rows.is_floating_point()
        and index.dim() == 1
        and rows.device.type == "cpu"
        and rows.layout == torch.strided
        and index.numel() * math.prod(rows.shape[1:]) >= LARGE
        and not torch.is_grad_enabled()
    )


class Messages(StandIn):
    """A stand-in for ``rows.index_select(0, index)``, times each of ``scales``."""

    rows: Tensor
    index: Tensor  # type: ignore[assignment]  # hides Tensor.index, which nothing calls
    scales: tuple[Tensor, ...]
    _copied: Tensor | None

    @staticmethod
    def __new__(cls, rows: Tensor, index: Tensor, scales: tuple[Tensor, ...] = ()) -> "Messages":
        """Makes a tensor with shape and type but no storage."""
        shape = (index.numel(), *rows.shape[1:])
        messages: Messages = Tensor._make_wrapper_subclass(cls, shape, dtype=rows.dtype, device=rows.device)
        messages.rows = rows
        messages.index = index
        messages.scales = scales
        messages._copied = None
        return messages

    def parts(self) -> list[Tensor]:
        """Returns the tensors that the messages are made from."""
        return [self.rows, self.index, *self.scales]

    def some(self, part: slice) -> Tensor:
        """Returns the messages of some edges."""
        block = self.rows.index_select(0, self.index[part])
        for scale in self.scales:
            block *= scale[part]
        return block

    def copied(self) -> Tensor:
        """Returns the messages of all edges, which are gathered at the first call."""
        if self._copied is None:
            self._copied = self.some(slice(None))
        return self._copied

    def add_to(self, out: Tensor, head: Tensor) -> Tensor:
        """Adds the message of each edge to the row of its head, edge after edge."""
        step = max(1, BLOCK // max(1, math.prod(self.shape[1:])))
        for first in range(0, len(head), step):
            part = slice(first, first + step)
            block = self.some(part)
            index = head[part].view(-1, *[1] * (block.dim() - 1)).expand_as(block)
            out.scatter_add_(0, index, block)
        return out

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Runs an operation: scaling waits, summing goes by blocks, all else works on copies."""
        kwargs = kwargs or {}
        if func in ABOUT_SHAPE_AND_TYPE:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        waiting = None if kwargs else _without_copies(func, args)
        if waiting is not None:
            return waiting
        if func in _NEW and type(args[0]) is Messages:
            return func(args[0].rows, *args[1:], **kwargs)
        return on_copies(func, args, kwargs)


def _without_copies(func: Callable[..., Any], args: Any) -> Tensor | None:
    """Returns the result of an operation that needs no copies of all messages; ``None`` for any other operation."""
    if func in _PRODUCTS and len(args) == 2:
        return _scaled(*args)
    if func is Tensor.expand_as and type(args[0]) is Tensor:
        return args[0].expand(args[1].shape)
    if func is Tensor.scatter_add_ and len(args) == 4 and _sums_rows(*args):
        out, _, index, messages = args
        first_column = (slice(None), *[0] * (index.dim() - 1))
        return cast(Messages, messages).add_to(out, index[first_column])
    return None


def _scaled(left: Any, right: Any) -> Messages | None:
    """Returns messages times one number, or one row of numbers, per edge; ``None`` for a product of another kind."""
    messages, scale = (left, right) if isinstance(left, Messages) else (right, left)
    if messages._copied is not None or type(scale) is not Tensor or scale.dtype != messages.dtype:
        return None
    if scale.dim() != messages.dim() or scale.size(0) != messages.size(0):
        return None
    if any(width not in (1, wanted) for width, wanted in zip(scale.shape[1:], messages.shape[1:], strict=True)):
        return None
    return Messages(messages.rows, messages.index, (*messages.scales, scale))


def _sums_rows(out: Any, dim: Any, index: Any, messages: Any) -> bool:
    """Tells whether ``scatter_add_`` with these arguments adds whole rows to whole rows."""
    return (
        type(out) is Tensor
        and dim == 0
        and type(index) is Tensor
        and isinstance(messages, Messages)
        and messages._copied is None
        and index.shape == messages.shape
        and out.shape[1:] == messages.shape[1:]
        and not any(step for step, size in zip(index.stride()[1:], index.shape[1:], strict=True) if size > 1)
    )


_SELECTS = {Tensor.index_select, torch.index_select}
_PRODUCTS = {Tensor.mul, Tensor.__mul__, Tensor.__rmul__, torch.mul}
_NEW = {Tensor.new_zeros, Tensor.new_ones, Tensor.new_empty}
_VIEWS = {Tensor.view, Tensor.expand, Tensor.expand_as, Tensor.unsqueeze}
_PURE = {getattr(Tensor, name) for name in ("clamp", "add", "__add__", "__radd__", "div", "__truediv__")}
_WRITES_NOWHERE = {*_PURE, *_SELECTS, *_PRODUCTS, *_NEW, *_VIEWS, *ABOUT_SHAPE_AND_TYPE}
