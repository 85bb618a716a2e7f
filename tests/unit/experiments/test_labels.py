"""Names beside the lines of a figure stay apart."""

from itertools import pairwise

import pytest

from agnncert.report.drawing import Curve, Level, Panel, draw_panels
from experiments.paper.labels import label_beside, spaced


def test_labels_are_moved_apart_and_stay_in_order() -> None:
    places = spaced([0.2, 0.71, 0.72, 0.73, 0.9], 0.06)
    assert places == sorted(places)
    assert min(b - a for a, b in pairwise(places)) >= 0.06 - 1e-9
    assert places[0] == pytest.approx(0.2)


@pytest.fixture
def labelled(tmp_path):
    """A drawn panel of three curves and two levels, and the names that were written into it."""
    sizes = list(range(11))
    curves = [
        Curve("steep", 0, sizes, [max(0.9 - 0.18 * size, 0.0) for size in sizes]),
        Curve("middling", 1, sizes, [0.8 - 0.06 * size for size in sizes]),
        Curve("flat", 2, sizes, [0.75 - 0.01 * size for size in sizes]),
    ]
    panel = Panel("panel", curves, [Level("majority", "majority class", 0.5), Level("majority", "another", 0.52)])
    drawn = []

    def label(axes, panel):
        label_beside(axes, panel)
        drawn.extend(axes.texts)

    svg = draw_panels([panel], tmp_path / "x.svg", "size", columns=1, label=label).read_text()
    return panel, {text.get_text(): text for text in drawn}, svg


def test_every_curve_is_named_beside_its_line(labelled) -> None:
    panel, notes, svg = labelled
    for curve in panel.curves:
        assert f">{curve.label}</text>" in svg
        (size, height), (left, middle) = notes[curve.label].xy, notes[curve.label].get_position()
        at = curve.sizes.index(size)
        after = curve.mean[at + 1] if at + 1 < len(curve.mean) else 0.0
        assert curve.mean[at] >= height > after - 1e-9  # where the curve falls below that height
        assert middle == height
        assert 0 < abs(left - size) < 4  # beside it, and no other curve is nearer
        assert notes[curve.label].get_color() == curve.line["color"]
    heights = sorted(notes[curve.label].xy[1] for curve in panel.curves)
    assert min(b - a for a, b in pairwise(heights)) > 0.05


def test_levels_are_named_in_the_margin_at_their_height(labelled) -> None:
    panel, notes, svg = labelled
    places = []
    for level in panel.levels:
        text = f"{level.label} {level.value:.2f}"
        assert f">{text}</text>" in svg
        assert notes[text].xy == (1.0, level.value)  # the right end of the line
        margin, place = notes[text].get_position()
        assert margin > 1
        assert abs(place - level.value) < 0.05
        places.append(place)
    assert places[1] - places[0] > 0.06
