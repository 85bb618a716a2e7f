"""The curves of a certificate: which share of the targets is certified (and correct) at each attack size."""

from dataclasses import dataclass

import numpy as np

from agnncert.evidence import FloatArray
from agnncert.votes import BoolArray, IntArray


@dataclass(frozen=True)
class Curve:
    """A share of the targets for each size; ``share[i]`` belongs to ``size[i]``, sizes ascend."""

    size: FloatArray
    share: FloatArray

    def at(self, size: float) -> float:
        """The share at a size, taken from the next larger size on the curve: never more than is proved."""
        place = int(np.searchsorted(self.size, size, side="left"))
        return float(self.share[place]) if place < len(self.size) else 0.0


def over_size(withstood: FloatArray | IntArray, counted: BoolArray, last: int) -> Curve:
    """The share of all targets that are counted and withstand each whole size from 0 to ``last``.

    Args:
        withstood: Largest size that each target withstands, -1 for none, ``inf`` for any, shape ``[n]``.
        counted: Which targets count (the correctly classified ones, or all), shape ``[n]``.
        last: Where the curve ends.

    Example:
        >>> over_size(np.array([2, 0, 5]), np.array([True, True, False]), 3).share.round(2).tolist()
        [0.67, 0.33, 0.33, 0.0]
    """
    sizes = np.arange(last + 1, dtype=np.float64)
    return Curve(sizes, _share_withstanding(np.asarray(withstood, dtype=np.float64), counted, sizes))


def over_degree(radius: IntArray, degree: IntArray, counted: BoolArray, most_points: int = 500) -> Curve:
    """The same over size divided by degree: certified at x if the radius is at least x times the degree.

    A target without edges is certified at every x as soon as it is certified at all. The sizes are the ratios
    at which the share changes. If these are many, a grid is used, on which :meth:`Curve.at` errs downwards.
    """
    ratio = np.where(
        radius < 0, -1.0, np.divide(radius, degree, where=degree > 0, out=np.full(len(radius), np.inf))
    )
    finite = np.unique(ratio[np.isfinite(ratio) & (ratio > 0)])
    if len(finite) > most_points:
        grid = np.geomspace(finite[0], finite[-1], most_points)
        finite = np.unique(np.append(grid[1:-1], finite[[0, -1]]))
    sizes = np.concatenate([[0.0], finite])
    return Curve(sizes, _share_withstanding(ratio, counted, sizes))


def _share_withstanding(withstood: FloatArray, counted: BoolArray, sizes: FloatArray) -> FloatArray:
    if len(withstood) == 0:
        return np.zeros(len(sizes))
    ordered = np.sort(withstood[counted])
    return (len(ordered) - np.searchsorted(ordered, sizes, side="left")) / len(withstood)


def changes_only(curve: Curve) -> Curve:
    """The same step curve without the sizes at which nothing happens."""
    if len(curve.size) < 3:
        return curve
    keep = np.concatenate([[True], np.diff(curve.share) != 0])
    keep[-1] = True
    return Curve(curve.size[keep], curve.share[keep])
