"""Certificates of live graphs say that a model learnt from a teacher, as those of ``certify`` do."""

import pytest

import agnncert as ac
from agnncert_live import LiveGraph
from tests.unit.test_teaching import QUICK, taught_once


@pytest.mark.parametrize("defence", [ac.NodeCentric(5), ac.PerNeighbour()], ids=str)
def test_a_live_certificate_names_the_teacher_and_is_accepted(defence, tmp_path) -> None:
    data, taught = taught_once()
    model = ac.fit(ac.build_model("gcn", taught, hidden_channels=8), taught, defence, **QUICK)
    live = LiveGraph(model, data, defence)
    certificate = live.certificate()
    assert certificate.claim.notes.count(taught.teaching.note) == 1
    certificate.save(tmp_path / "live.cert")
    assert ac.verify(tmp_path / "live.cert", data=data, model=model)
