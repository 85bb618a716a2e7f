"""``print(certificate)``: what is proved, in plain language."""

from typing import TYPE_CHECKING

import numpy as np

from agnncert.votes import IntArray

if TYPE_CHECKING:
    from agnncert.certificate import Certificate
    from agnncert.evidence import FloatArray


def summary(certificate: "Certificate") -> str:
    """A certificate in words and a few numbers."""
    claim = certificate.claim
    made_by = f"{claim.method}, {claim.division}" if claim.division else claim.method
    targets = f"{_many(certificate.num_targets, claim.task)} in {certificate.counts.shape[1]} classes"
    lines = [
        f"Certificate of {targets} ({made_by})",
        f"  guarantee       {_guarantee(certificate)}",
    ]
    if certificate.num_targets:
        lines += [f"  {title:<15} {text}" for title, text in _numbers(certificate)]
    return "\n".join([*lines, str(claim)])


def _numbers(certificate: "Certificate") -> list[tuple[str, str]]:
    unproved = int((certificate.radius < 0).sum())
    found = [("radius", _spread(certificate.radius))]
    if certificate.truth is not None:
        correct = certificate.label == certificate.truth
        found.insert(0, ("correct labels", f"{correct.mean():.1%} of the targets"))
    if unproved:
        found.append(("unproved", f"{unproved:,} of them: too close to a tie to be sure of the label itself"))
    if (certificate.new_neighbours >= 0).any():
        rest = "with any deletions and any features of other nodes"
        found.append(("new neighbours", f"{_spread(certificate.new_neighbours)}, {rest}"))
    return found


def _guarantee(certificate: "Certificate") -> str:
    claim = certificate.claim
    if claim.alpha is None:
        return "deterministic: no attack within the budget can change a certified label"
    return f"probabilistic: wrong with probability at most {claim.alpha:g} for {claim.alpha_scope}"


def _spread(values: "IntArray | FloatArray") -> str:
    low, middle, high = np.sort(values)[[0, (len(values) - 1) // 2, -1]]
    return f"median {_amount(middle)}, smallest {_amount(low)}, largest {_amount(high)}"


def _amount(value: float) -> str:
    return "any number" if np.isinf(value) else "none" if value < 0 else f"{value:,.0f}"


def _many(number: int, task: str) -> str:
    return f"{number:,} {task}" if number == 1 else f"{number:,} {task}s"
