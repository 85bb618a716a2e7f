"""Names beside the lines of a figure stay apart."""

from itertools import pairwise

import pytest

from agnncert.report.figures import Curve, Level, Panel, draw_panels
from experiments.paper.labels import label_beside, spaced


def test_labels_are_moved_apart_and_stay_in_order() -> None:
    places = spaced([0.2, 0.71, 0.72, 0.73, 0.9], 0.06)
    assert places == sorted(places)
    assert min(b - a for a, b in pairwise(places)) >= 0.06 - 1e-9
    assert places[0] == pytest.approx(0.2)


def test_curves_and_levels_are_named_beside_their_lines(tmp_path) -> None:
    panel = Panel("panel", [Curve("certain", 0, [0, 1], [0.8, 0.4])], [Level("majority", "majority class", 0.5)])
    svg = draw_panels([panel], tmp_path / "x.svg", "size", columns=1, label=label_beside).read_text()
    assert ">certain</text>" in svg
    assert ">majority class 0.50</text>" in svg
