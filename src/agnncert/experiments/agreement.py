"""Do two results folders agree where they hold the same runs?"""

from collections.abc import Iterator
from dataclasses import dataclass

from agnncert.experiments.results import Results, share
from agnncert.experiments.rows import Row
from agnncert.experiments.spec import Setting

# On one machine a seed gives the same row again. Another processor or another version of torch rounds sums in
# another order; training amplifies that, and the best epoch on the validation set may then be another one.
TOLERANCE = 0.02

_SHARES = ("accuracy_whole_graph", "accuracy", "accuracy_edgeless", "accuracy_majority")
_CURVES = ("certified", "certified_neighbours")


@dataclass(frozen=True)
class Agreement:
    """The outcome of a comparison.

    Attributes:
        compared: How many runs both folders hold.
        largest: The largest difference between two accuracies, plain or certified.
        differences: A sentence for each run that does not agree.
    """

    compared: int
    largest: float
    differences: tuple[str, ...]


def compare_results(ours: Results, theirs: Results, tolerance: float = TOLERANCE) -> Agreement:
    """Compares accuracy and certified accuracy of all runs that both hold.

    Args:
        ours: Rows that were just made.
        theirs: Rows to hold them against.
        tolerance: How far two accuracies may lie apart.
    """
    both = [setting for setting in ours.rows if setting in theirs.rows]
    largest, found = 0.0, []
    for setting in both:
        a, b = ours.rows[setting], theirs.rows[setting]
        if (a["digest"], a["recipe"]) != (b["digest"], b["recipe"]):
            what = "data" if a["digest"] != b["digest"] else "recipe"
            found.append(f"{describe(setting)}: made with another {what}, so they cannot be compared.")
            continue
        where, apart = max(_apart(a, b), key=lambda one: one[1])
        largest = max(largest, apart)
        if apart > tolerance:
            found.append(
                f"{describe(setting)}: {where} differs by {share(apart)}, more than {share(tolerance)}."
            )
    return Agreement(len(both), largest, tuple(found))


def describe(setting: Setting) -> str:
    """A run in a few words: its dataset, and what is not usual.

    Example:
        >>> describe(Setting("cora-ml", division="edge", num_groups=300))
        'cora-ml division=edge, num_groups=300'
    """
    usual = Setting(setting.dataset).to_json()
    unusual = [f"{key}={value}" for key, value in setting.to_json().items() if value != usual[key]]
    return f"{setting.dataset} {', '.join(unusual) or 'undefended gcn'}"


def _apart(a: Row, b: Row) -> Iterator[tuple[str, float]]:
    for name in _SHARES:
        if name in a and name in b:
            yield name, abs(a[name] - b[name])
    for name in _CURVES:
        if name in a and name in b:
            other = dict(zip(b["sizes"], b[name], strict=True))
            for size, value in zip(a["sizes"], a[name], strict=True):
                if size in other:
                    yield f"{name} at size {size}", abs(value - other[size])
