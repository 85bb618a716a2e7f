"""Messages along edges that are never all in memory: gathered, scaled and summed some edges at a time.

Message passing copies the row of a node to each of its edges (``x.index_select(0, source)``), scales the copies, and
sums those of each head (``scatter_add_``). In a large subgraph the copies are the largest tensors by far, and to write
them to memory and read them back takes longer than to compute. ``Messages`` stands in for them until they are summed;
then blocks of edges that stay in the processor's cache are gathered, scaled and added, in the order of the edges, so
that every sum is the same to the last bit. Any other operation sees ordinary copies.

Rows that are not copied yet must not change before they are. So between gathering and summing only operations are
waited out that are known to write nowhere near them; all others find the copies made.
"""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from agnncert.engine.stand_in import ABOUT_SHAPE_AND_TYPE, StandIn, on_copies

LARGE = 2**22  # numbers: smaller messages stay in the cache anyway
BLOCK = 2**19  # numbers that are gathered at a time


class InBlocks(TorchFunctionMode):
    """While this is entered, large messages are summed in blocks. For calls that ask for no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[weakref.ref[Messages]] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Gathers later what is large, and sees to it that nothing changes until then."""
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
        """Whether a function writes to nothing that is still to be read."""
        if func is Tensor.scatter_add_:
            return self._apart(args[0])
        return func in _WRITES_NOWHERE and "out" not in kwargs

    def _apart(self, into: Tensor) -> bool:
        """Whether a tensor shares no memory with anything that is still to be read."""
        waiting = [messages for reference in self._waiting if (messages := reference()) is not None]
        read = [part for messages in waiting for part in (messages.rows, messages.index, *messages.scales)]
        return type(into) is Tensor and all(
            into.untyped_storage().data_ptr() != part.untyped_storage().data_ptr() for part in read
        )


def _is_large(*args: Any) -> bool:
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
        """A tensor with shape and type but no storage."""
        shape = (index.numel(), *rows.shape[1:])
        messages: Messages = Tensor._make_wrapper_subclass(cls, shape, dtype=rows.dtype, device=rows.device)
        messages.rows, messages.index, messages.scales, messages._copied = rows, index, scales, None
        return messages

    def some(self, part: slice) -> Tensor:
        """The messages of some edges."""
        block = self.rows.index_select(0, self.index[part])
        for scale in self.scales:
            block *= scale[part]
        return block

    def copied(self) -> Tensor:
        """All of them."""
        if self._copied is None:
            self._copied = self.some(slice(None))
        return self._copied

    def add_to(self, out: Tensor, head: Tensor) -> Tensor:
        """Adds the message of each edge to the row of its head, edge after edge."""
        step = max(1, BLOCK // max(1, math.prod(self.shape[1:])))
        for first in range(0, len(head), step):
            part = slice(first, first + step)
            block = self.some(part)
            out.scatter_add_(0, head[part].view(-1, *[1] * (block.dim() - 1)).expand_as(block), block)
        return out

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Scaling waits, summing goes by blocks, all else works on copies."""
        kwargs = kwargs or {}
        if func in ABOUT_SHAPE_AND_TYPE:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        if not kwargs:
            if func in _PRODUCTS and len(args) == 2:
                scaled = _scaled(*args)
                if scaled is not None:
                    return scaled
            if func is Tensor.expand_as and type(args[0]) is Tensor:
                return args[0].expand(args[1].shape)
            if func is Tensor.scatter_add_ and len(args) == 4 and _sums_rows(*args):
                return args[3].add_to(args[0], args[2][(slice(None), *[0] * (args[2].dim() - 1))])
        if func in _NEW and type(args[0]) is Messages:
            return func(args[0].rows, *args[1:], **kwargs)
        return on_copies(func, args, kwargs)


def _scaled(one: Any, other: Any) -> Messages | None:
    """Messages times one number, or one row of numbers, per edge; None if the product is of another kind."""
    messages, scale = (one, other) if isinstance(one, Messages) else (other, one)
    if messages._copied is not None or type(scale) is not Tensor or scale.dtype != messages.dtype:
        return None
    fits = scale.dim() == messages.dim() and all(
        have == want or (have == 1 and k > 0)
        for k, (have, want) in enumerate(zip(scale.shape, messages.shape, strict=True))
    )
    return Messages(messages.rows, messages.index, (*messages.scales, scale)) if fits else None


def _sums_rows(out: Any, dim: Any, index: Any, messages: Any) -> bool:
    """Whether whole rows are added to whole rows."""
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
