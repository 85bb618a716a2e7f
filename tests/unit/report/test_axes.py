"""Axes end where nearly all labels have fallen, and say who goes on."""

import numpy as np

from agnncert.report.charts import accuracy_chart, class_chart
from agnncert.report.summary import ReportContext, summarise
from tests.support.toys import ToyEvidence, toy_certificate


def summary_of(radius, **context):
    """A certificate of two classes, alternating and all correct, with these radii."""
    radius = np.asarray(radius)
    points = np.zeros((len(radius), 2), dtype=np.int64)
    points[np.arange(len(radius)), np.arange(len(radius)) % 2] = 1000
    points[np.arange(len(radius)), 1 - np.arange(len(radius)) % 2] = 999 - radius
    toy = toy_certificate()
    made = type(toy)(toy.claim, ToyEvidence(points), np.arange(len(radius)), truth=np.arange(len(radius)) % 2)
    assert made.radius.tolist() == radius.tolist()
    return summarise(made, ReportContext(**context))


def test_one_hub_does_not_stretch_the_axis():
    summary = summary_of([*([3, 5, 7, 8] * 100), 400])
    assert summary.last_size > 390
    assert summary.shown_size <= 12
    chart = accuracy_chart(summary)
    assert chart["max_size"] == summary.shown_size
    assert max(point["x"] for point in chart["certified"]) <= summary.shown_size
    assert "1 of 401 nodes reach up to" in chart["x_label"]
    assert class_chart(summary)["max_size"] <= summary.shown_size


def test_a_rare_class_that_is_certified_far_is_not_cut_off():
    radius = np.full(2000, 5)
    radius[1:60:2] = 300
    summary = summary_of(radius)
    few = summary_of(np.where(np.arange(2000) % 2 == 0, 5, 300))
    assert few.shown_size == few.last_size
    assert summary.shown_size == summary.last_size or summary.shown_size > 300


def test_curves_that_fall_evenly_and_attacks_are_shown_whole():
    even = summary_of(np.arange(400))
    assert even.shown_size == even.last_size
    assert "reach up to" not in accuracy_chart(even)["x_label"]
    attacked = summary_of([*([3, 5] * 100), 400], attacked=[(120, 0.5)])
    assert attacked.shown_size >= 120
