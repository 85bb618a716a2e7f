"""Curves can be told apart without colours."""

import re

import pytest

from agnncert.report.drawing import Curve, Level, Panel, Spoken, _steps, draw_panels


def test_the_same_rows_give_the_same_file_and_curves_differ_in_dash_and_marker(tmp_path) -> None:
    sizes, values = [0, 1, 2], [0.8, 0.4, 0.0]
    curves = [Curve(str(k), k, sizes, values, values, values) for k in range(4)]
    panel = Panel("panel", curves, [Level("mlp", "MLP", 0.5)])
    one, two = (
        draw_panels([panel], tmp_path / name / "x.svg", "size", Spoken("t", "about")).read_text() for name in "ab"
    )
    assert one == two
    dashes = set(re.findall(r"stroke-dasharray: ([\d., ]+)", one))
    assert len(dashes) >= 4  # three curves and a level; the first curve is solid


def test_a_legend_names_curves_and_levels_and_a_dash_of_its_own_is_used(tmp_path) -> None:
    curves = [Curve("certain", 0, [0, 1], [0.8, 0.4], dash="-"), Curve("by chance", 1, [0, 1], [0.7, 0.3], dash="--")]
    panel = Panel("panel", curves, [Level("majority", "majority class", 0.5)])
    svg = draw_panels([panel], tmp_path / "x.svg", "size", columns=1).read_text()
    assert all(f">{name}</text>" in svg for name in ("certain", "by chance", "majority class"))


@pytest.mark.parametrize(("steps", "corners"), [("pre", [0, 2, 4]), ("post", [0, 3, 4])])
def test_sizes_at_which_nothing_happens_are_left_out(steps, corners) -> None:
    curve = Curve("curve", 0, [0, 1, 2, 3, 4], [0.8, 0.8, 0.8, 0.2, 0.2], steps=steps)
    assert _steps(curve, end=10)[0] == corners
