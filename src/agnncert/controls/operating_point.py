"""Scores at the operating point of another model, and what a difference between two models is worth. Pure functions.

A certified model has an operating point: some targets get the positive label. Another model is put to the same point by
a threshold on its scores: as many of a *reference group* get the positive label there. The group is the targets of the
other class (the same false positive rate) or all targets (the same number of alerts). Targets with the same score share
what is left: if two of five tied targets may still be alerts, each of them counts as 2/5 of one.
"""

import numpy as np

from agnncert.certificates.votes import BoolArray, FloatArray

REPLICATES = 500  # resampled test parts, of which there are fewer for many targets
FEWEST_REPLICATES = 200
MOST_DRAWN = 10_000_000  # targets times replicates
NORMAL_95 = 1.959964  # half the width of a 95 % interval, in standard deviations


def alerts_like(score: FloatArray, group: BoolArray, count: float) -> FloatArray:
    """Returns how much of an alert each target is if ``count`` of a group are: 1, 0, or a share for tied scores.

    Args:
        score: Score of each target, shape ``[n]``.
        group: The reference group, shape ``[n]``.
        count: How many of the group are alerts.

    Example:
        >>> everyone = np.ones(4, dtype=bool)
        >>> alerts_like(np.array([3.0, 2.0, 2.0, 1.0]), everyone, 2).tolist()
        [1.0, 0.5, 0.5, 0.0]
    """
    descending = np.sort(score[group])[::-1]
    if count >= len(descending):
        return np.ones(len(score))
    last = descending[int(count)]
    share = (count - (descending > last).sum()) / (descending == last).sum()
    return np.where(score > last, 1.0, np.where(score == last, share, 0.0))


def roc_auc(score: FloatArray, positive: BoolArray) -> float:
    """Returns the area under the ROC curve: how often a positive target has the larger score. Ties count one half.

    It is NaN if all targets are positive, or none is.

    Example:
        >>> roc_auc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]))
        0.875
    """
    num_positive = int(positive.sum())
    num_others = len(positive) - num_positive
    if not num_positive or not num_others:
        return float("nan")
    _, block, size = np.unique(score, return_inverse=True, return_counts=True)
    rank = np.cumsum(size) - (size - 1) / 2  # of tied scores the mean of their ranks
    above = rank[block][positive].sum() - num_positive * (num_positive + 1) / 2
    return float(above / (num_positive * num_others))


def average_precision(score: FloatArray, positive: BoolArray) -> float:
    """Returns the mean precision over all thresholds, weighted by the recall that each of them adds.

    It is NaN if no target is positive.

    Example:
        >>> round(average_precision(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])), 4)
        0.8333
    """
    num_positive = int(positive.sum())
    if not num_positive:
        return float("nan")
    _, block = np.unique(-score, return_inverse=True)
    found = np.bincount(block, weights=positive)
    alerts = np.bincount(block)
    precision = np.cumsum(found) / np.cumsum(alerts)
    return float((found / num_positive) @ precision)


def interval_of_mean(difference: FloatArray, variance: float = 0.0) -> tuple[float, float]:
    """Returns a 95 % interval of a mean difference between two models on the same targets.

    A target's difference is 1 if only the first model is right, -1 if only the second is, and something between if
    scores are tied. As Agresti and Min (2005) advise, half a target is added for each of the four outcomes, so that
    few targets, or models that never differ, do not look certain.

    Args:
        difference: The difference of each target, shape ``[n]``.
        variance: A larger variance of the mean, if one is known. Defaults to that of the differences.

    Example:
        >>> low, high = interval_of_mean(np.zeros(50))
        >>> round(low, 3), round(high, 3)
        (-0.038, 0.038)
    """
    n = len(difference) + 2
    mean = float(difference.sum()) / n
    of_pairs = ((np.abs(difference).sum() + 1) / n - mean**2) / n
    half = NORMAL_95 * float(np.sqrt(max(of_pairs, variance)))
    return max(-1.0, mean - half), min(1.0, mean + half)


def variance_of_difference(
    alerts: BoolArray, score: FloatArray, positive: BoolArray, group: BoolArray, seed: int = 0
) -> float:
    """Returns the variance of the difference in recall, over test parts that might have been drawn instead.

    Targets that are positive, in the group of reference, both or neither are drawn again, each kind by itself. The
    threshold of the scores is set anew each time.

    Args:
        alerts: Whether the certified model gives the positive label, shape ``[n]``.
        score: Scores of the other model, shape ``[n]``.
        positive: Whether the true class is the positive one, shape ``[n]``.
        group: The reference group, shape ``[n]``.
        seed: Of the draws.
    """
    order = np.argsort(-score, kind="stable")  # the largest score first
    ends = np.flatnonzero(np.append(np.diff(score[order]) != 0, True))  # the last target of each block of tied scores
    alerts, positive, group = alerts[order], positive[order], group[order]
    strata = [np.flatnonzero((positive == p) & (group == g)) for p in (False, True) for g in (False, True)]
    generator = np.random.default_rng(seed)
    replicates = int(np.clip(MOST_DRAWN // max(1, len(score)), FEWEST_REPLICATES, REPLICATES))
    differences = np.zeros(replicates)
    times = np.zeros(len(score))
    for number in range(replicates):
        for members in strata:
            drawn = generator.integers(0, max(1, len(members)), len(members))
            times[members] = np.bincount(drawn, minlength=len(members))
        found = times * positive
        in_group = times * group
        recalled = _found_like(np.cumsum(found)[ends], np.cumsum(in_group)[ends], float(in_group[alerts].sum()))
        differences[number] = (found[alerts].sum() - recalled) / found.sum()
    return float(differences.var(ddof=1))


def _found_like(found: FloatArray, in_group: FloatArray, count: float) -> float:
    """Returns how many positive targets are alerts if ``count`` of the group are, as :func:`alerts_like` shares them.

    Args:
        found: Positive targets down to each score, the largest first.
        in_group: Members of the group down to each score.
        count: How many of the group are alerts.
    """
    if count >= in_group[-1]:
        return float(found[-1])
    last = int(np.searchsorted(in_group, count, side="right"))  # the first score whose targets are not all alerts
    found_before, group_before = (found[last - 1], in_group[last - 1]) if last else (0.0, 0.0)
    share = (count - group_before) / (in_group[last] - group_before)
    return float(found_before + share * (found[last] - found_before))
