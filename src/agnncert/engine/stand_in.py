"""``StandIn``: a tensor with shape and type but no numbers, until an operation asks for them."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_is_leaf, tree_map

_METHODS = (Tensor.size, Tensor.dim, Tensor.numel, Tensor.is_floating_point, Tensor.__len__, Tensor.get_device)
_STORAGE = ("is_cuda", "is_sparse", "is_sparse_csr", "is_quantized")
_PROPERTIES = ("shape", "dtype", "device", "layout", "ndim", "requires_grad", *_STORAGE)
ABOUT_SHAPE_AND_TYPE = {*_METHODS, *(getattr(Tensor, name).__get__ for name in _PROPERTIES)}


class StandIn(Tensor):
    """A tensor with shape and type but no numbers, until an operation asks for them."""

    _given_away: bool = False  # whether somebody else may hold the memory of the copied numbers

    def copied(self) -> Tensor:
        """Returns the numbers as an ordinary tensor, which is made at the first call."""
        raise NotImplementedError

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Runs operations that reach the tensor core without passing ``__torch_function__`` on copied numbers."""
        return on_copies(func, args, kwargs or {})


def on_copies(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Calls a function with ordinary tensors in place of every stand-in among its arguments."""
    used: list[StandIn] = []

    def plain(value: Any) -> Any:
        if not isinstance(value, StandIn):
            return value
        used.append(value)
        return value.copied()

    if not all(map(tree_is_leaf, (*args, *kwargs.values()))):  # rare, and slow
        args, kwargs = tree_map(plain, (args, kwargs))
    result = func(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})
    for stand_in in used:
        stand_in._given_away |= func is Tensor.data_ptr or _shares_memory(result, stand_in.copied())
    return result


def _shares_memory(result: Any, copied: Tensor) -> bool:
    """Tells whether a result may share memory with copied numbers.

    Torch does not count writes through such a result, as in ``x.data``.
    """
    if isinstance(result, Tensor):
        if result.layout != torch.strided:
            return False
        try:
            return result.untyped_storage().data_ptr() == copied.untyped_storage().data_ptr()
        except (RuntimeError, NotImplementedError):  # inside a transformation of torch.func
            return True
    if isinstance(result, tuple | list):
        parts = (part for part in result if not isinstance(part, bool | int | float | list))
        return any(_shares_memory(part, copied) for part in parts)
    return not isinstance(result, bool | int | float | str | torch.dtype | torch.device | None)
