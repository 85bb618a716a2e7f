"""Finds a column of features that is another name of the label, as in a table that has it twice."""

from typing import Any

import numpy as np
import numpy.typing as npt


def column_that_is_the_label(values: npt.NDArray[Any], classes: npt.NDArray[Any]) -> int | None:
    """Returns the first column that is the same within each class and not for all classes; None if there is none.

    Args:
        values: Features of labelled nodes or pairs, shape ``[n, F]``.
        classes: Their labels, at least one, shape ``[n]``.
    """
    of_class = [values[classes == k] for k in np.unique(classes)]
    low = np.stack([each.min(axis=0) for each in of_class])
    high = np.stack([each.max(axis=0) for each in of_class])
    tells = (low == high).all(axis=0) & (low.max(axis=0) > low.min(axis=0))
    return int(tells.argmax()) if tells.any() else None
