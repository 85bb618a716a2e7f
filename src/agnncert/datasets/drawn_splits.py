"""How the split of a user's data was drawn: by ids, so that nothing else moves anybody, or by class.

A split by class is drawn with one generator for all members of a class. One changed label shifts
every later draw, and moves other nodes between training, validation and test. Where labels or
graphs may be poisoned, the part of each node has to follow from its own id. No torch: the settings
of commands name these ways.
"""

from collections.abc import Collection
from typing import Any

from agnncert.errors import DatasetError, did_you_mean

RECORD = "split_by"  # of a graph or graph set: how its split was drawn; none if it was not drawn here
BY_ID, BY_CLASS, BY_TIME = "id", "class", "time"
DRAWN_BY = (BY_ID, BY_CLASS)


def checked_way(by: str) -> str:
    """Returns ``"id"`` or ``"class"``, or raises DatasetError if ``by`` is something else."""
    if by not in DRAWN_BY:
        raise DatasetError(f"a split is drawn by {by!r:.60}: {did_you_mean(str(by), DRAWN_BY)}")
    return by


def require_fixed_split(data: Any, defence: str, accepted: Collection[str] = (BY_ID,)) -> None:
    """Refuses a split that was drawn so that poisoned training data can move others in it.

    A split that was not drawn here, such as a published one or masks of the user's own, is fixed as
    far as anybody can tell, and the claim says so.

    Args:
        data: The graph or graph set.
        defence: Name of the defence, for the message.
        accepted: The ways of drawing a split that the theorem allows.

    Raises:
        DatasetError: The split was drawn in another way.
    """
    if any(getattr(data, name, None) is not None for name in ("threshold_mask", "threshold")):
        raise DatasetError(
            f"{defence} certifies against poisoned training data, and who is kept for a threshold follows from labels: "
            "use the data as it was before keep_for_threshold."
        )
    drawn_by = getattr(data, RECORD, None)
    if drawn_by is None or drawn_by in accepted:
        return
    why = {
        BY_CLASS: "drawn by class, so that one changed label, or one more graph, moves others between "
        "training, validation and test",
        BY_TIME: "cut by time, where labels or graphs that are added or removed move the cut, and others over it",
    }.get(drawn_by, f"drawn by {drawn_by!r:.60}")
    raise DatasetError(
        f"the split of this data was {why}. {defence} certifies against poisoned training data, and "
        "whoever draws such a split again gets another model than the certified one. Draw it by ids, "
        'which moves nobody else: data = ac.split(data), or ac.load_dataset(name, split="by-id"), or '
        "--set split_by=id in a command. If this split is kept, whatever happens to labels and "
        f"graphs, say so: data.{RECORD} = None."
    )
