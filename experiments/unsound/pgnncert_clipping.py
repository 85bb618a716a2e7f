"""PGNNCert trains its T models with one optimiser that clips the gradient of all of them together.

Published rule: each of T models is trained on one subgraph, so that poisoned training data of one subgraph alter one
vote. The released program clips the norm of the gradient of all models: a large gradient of one makes the steps of the
others small.

The example has one weight per model, which begins at -1 (class 0) and is pulled to +1 (class 1) by its own data.
"""

from experiments.unsound.common import Broken, amount, winner

MODELS, STEPS, RATE, CLIP = 5, 40, 0.2, 1.0


def trained(pulls: list[float]) -> list[float]:
    """Returns the weights after some steps of gradient descent on squared errors, each scaled by its pull."""
    weights = [-1.0] * MODELS
    for _ in range(STEPS):
        gradients = [pull * (weight - 1.0) for weight, pull in zip(weights, pulls, strict=True)]
        norm = sum(gradient**2 for gradient in gradients) ** 0.5
        scale = min(1.0, CLIP / norm) if norm else 1.0
        weights = [weight - RATE * scale * gradient for weight, gradient in zip(weights, gradients, strict=True)]
    return weights


def votes(pulls: list[float]) -> list[int]:
    """Returns the vote of each model: the sign of its weight."""
    return [int(weight > 0) for weight in trained(pulls)]


def demonstrate() -> Broken:
    """Poisons the data of one model so that its gradient is a thousand times as large, whichever way it points."""
    clean = [1.0] * MODELS
    poisoned = [-1000.0, *clean[1:]]
    before = votes(clean)
    after = votes(poisoned)
    return Broken(
        method="PGNNCert",
        rule="poisoned data of one subgraph alter one vote",
        certified=amount(before, "subgraph"),
        attack="the training data of one subgraph are poisoned",
        before=winner(before, 2),
        after=winner(after, 2),
        why="the gradient is clipped for all models together, so that one of them can stop the others",
    )
