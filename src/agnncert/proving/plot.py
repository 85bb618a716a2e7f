"""``certificate.plot()``: certified accuracy over the perturbation size, drawn with matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np

from agnncert.certificates.votes import FloatArray, IntArray
from agnncert.errors import missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from agnncert.proving.certificate import Certificate

_SHOWN = (
    0.99  # the axis ends where this share of the certified labels is lost, so that one large radius stretches nothing
)
_MOST_SIZES = 1_000  # the axis ends there where labels withstand any number of changes


def plot_certificate(certificate: "Certificate", ax: "Axes | None" = None, **style: Any) -> "Axes":
    """Draws a certificate; the arguments are those of ``Certificate.plot``."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ModuleNotFoundError as error:
            raise missing(error.name, "certificate.plot()") from error
        ax = pyplot.subplots(layout="constrained")[1]
    sizes, shares = curve(certificate)
    # Between two sizes the height is that of the larger one, so that the line is never above what is certified.
    ax.step(sizes, shares, **{"where": "pre", "marker": "o", "markersize": 3, **style})
    has_truth = bool(certificate.labelled.any())
    ax.set_xlabel(f"perturbation size\n(one step: {certificate.claim.unit})")
    ax.set_ylabel("certified accuracy" if has_truth else "share of labels that are certified")
    ax.set_ylim(0, 1)
    ax.set_xlim(left=0)
    return ax


def curve(certificate: "Certificate") -> tuple[IntArray, FloatArray]:
    """Returns sizes from 0 on, and the share of targets that are certified at each size.

    If classes are known, targets must be correct as well, and only those with a known class count.
    """
    radius = np.asarray(certificate.radius)
    if certificate.truth is not None and certificate.labelled.any():
        radius = np.where(certificate.label == certificate.truth, radius, -1)[certificate.labelled]
    certified = radius[radius >= 0]
    last = int(np.quantile(certified, _SHOWN, method="higher")) if len(certified) else 0
    sizes = np.arange(min(last, _MOST_SIZES) + 2)
    shares = [float((radius >= size).mean()) for size in sizes]
    return sizes, np.array(shares)
