"""Files that are handed over with other exclusions, or with some of their targets: refused, or true of what is left."""

import copy
import json

import numpy as np
import pytest

import agnncert as ac
from agnncert.cli.handover import issue_files
from agnncert.errors import CertificateError
from agnncert.verdict import verify
from tests.soundness.forger.forging import derive, lay_open, seal, select
from tests.soundness.forger.hostile import ODD, open_up, sealed
from tests.support.certificates import certificate_of, random_evidence

BUDGETS = (ac.Budget(add_edges=1), ac.Budget(delete_edges=2, change_features=1))
THEOREMS = ("node-centric/node", "edge-centric/node")
BEST = 8


@pytest.fixture(params=THEOREMS)
def file(request, tmp_path):
    evidence = random_evidence(np.random.default_rng(7), request.param, num_targets=30, num_groups=12, unstable=0.05)
    certificate_of(evidence).save(tmp_path / "whole.cert", BUDGETS, exclusions=True)
    return tmp_path / "whole.cert"


def altered_exclusions(honest):
    """What a forger may write in place of the numbers of one statement."""
    yield from (odd for odd in ODD if odd != honest)
    yield from ([odd, *honest[1:]] for odd in ODD if not (type(odd) is int and odd == honest[0]))
    yield from (honest[::-1], [*honest, 0], honest[:-1], [float(number) for number in honest])
    yield from ([number + (k == place) for k, number in enumerate(honest)] for place in range(len(honest)))


def test_no_altered_exclusion_is_verified_or_issued(file, tmp_path) -> None:
    header, arrays = open_up(file)
    tried = 0
    for forged in altered_exclusions(header["statements"][0]["excluded"]):
        other = copy.deepcopy(header)
        other["statements"][0]["excluded"] = forged
        try:
            (tmp_path / "forged.cert").write_bytes(sealed(other, arrays))
        except UnicodeEncodeError:  # a lone surrogate, which no file can hold
            continue
        tried += 1
        assert not verify(tmp_path / "forged.cert").holds, forged
        with pytest.raises(CertificateError):
            issue_files(tmp_path / "forged.cert", {}, tmp_path / "out", whole=False)
        assert not any((tmp_path / "out").glob("*")), forged
    assert tried > len(ODD)


def test_the_best_targets_alone_are_refused_with_the_statements_of_all(file, tmp_path) -> None:
    draft = lay_open(file)
    select(draft, np.argsort(-draft.arrays["radius"], kind="stable")[:BEST])
    assert seal(draft, tmp_path / "best.cert")
    assert not verify(tmp_path / "best.cert").holds


def test_the_best_targets_alone_say_no_more_about_each_and_how_few_they_are(file, tmp_path) -> None:
    whole = ac.load_certificate(file)
    draft = lay_open(file)
    select(draft, np.argsort(-draft.arrays["radius"], kind="stable")[:BEST])
    assert derive(draft)
    assert seal(draft, tmp_path / "best.cert")
    assert verify(tmp_path / "best.cert").holds
    best = ac.load_certificate(tmp_path / "best.cert")
    places = [whole.position[target] for target in best.target.tolist()]
    assert (best.radius == whole.radius[places]).all()
    for budget in BUDGETS:
        assert (best.possible(budget) == whole.possible(budget)[places]).all()
    files = issue_files(tmp_path / "best.cert", {}, tmp_path / "out", whole=False)
    assert json.loads(files["redacted_form"].read_text(encoding="utf-8"))["targets"] == BEST
