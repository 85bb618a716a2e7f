"""``certificate.plot()`` draws what the certificate says."""

import dataclasses

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from agnncert.proving.plot import curve
from tests.support.certificates import certificate_of, random_evidence


@pytest.fixture
def certificate():
    rng = np.random.default_rng(3)
    made = certificate_of(random_evidence(rng, "node-centric/node"))
    return dataclasses.replace(made, truth=made.label.copy())


def test_the_line_is_certified_accuracy_at_every_size(certificate) -> None:
    line = certificate.plot().lines[0]
    sizes, heights = line.get_xdata(), line.get_ydata()
    assert sizes[0] == 0
    assert heights == pytest.approx(certificate.certified_accuracy(sizes=sizes))
    assert heights[-1] <= 0.01 + 1 / certificate.num_targets
    assert line.get_drawstyle() == "steps-pre"  # never above what is certified between two sizes


def test_wrong_and_unknown_classes_lower_the_line_and_leave_it(certificate) -> None:
    wrong = dataclasses.replace(certificate, truth=(certificate.label + 1) % 3)
    assert not curve(wrong)[1].any()
    unknown = dataclasses.replace(certificate, truth=np.full(certificate.num_targets, -1))
    assert curve(unknown)[1][0] == pytest.approx((certificate.radius >= 0).mean())
    assert "share of labels" in unknown.plot().get_ylabel()


def test_several_certificates_share_axes_and_one_large_radius_stretches_nothing(certificate) -> None:
    ax = certificate.plot(label="first")
    assert certificate.plot(ax, label="second", color="k") is ax
    assert [line.get_label() for line in ax.lines] == ["first", "second"]
    radius = np.zeros(certificate.num_targets * 10, dtype=np.int64)
    radius[0] = 2**40

    class Stretched:
        truth = None
        labelled = np.zeros(len(radius), dtype=bool)

    Stretched.radius = radius
    assert len(curve(Stretched)[0]) < 5
    Stretched.radius = np.full(100, 2**40)
    assert len(curve(Stretched)[0]) < 2_000
