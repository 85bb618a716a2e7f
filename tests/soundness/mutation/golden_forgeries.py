"""Golden files that are altered and sealed again: a check that they are refused fails where a guard is gone."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import agnncert as ac
from tests.soundness.forger.forging import Draft, budget_of, drafted, lay_open, seal
from tests.soundness.golden.examples import EXAMPLES
from tests.support.paths import GOLDEN


def is_refused(alter: Callable[[Draft], None], name: str) -> Callable[[Path], None]:
    """Returns a check that an altered golden file is refused by what it says itself."""

    def check(folder: Path) -> None:
        assert not ac.verify(_forged(alter, name, folder)).holds

    return check


def is_refused_with_the_graph(alter: Callable[[Draft], None], name: str) -> Callable[[Path], None]:
    """Returns a check that an altered golden file holds by itself and is refused with the graph."""

    def check(folder: Path) -> None:
        file = _forged(alter, name, folder)
        assert ac.verify(file).holds
        assert not ac.verify(file, data=EXAMPLES[name].data()).holds

    return check


def _forged(alter: Callable[[Draft], None], name: str, folder: Path) -> Path:
    draft = lay_open(GOLDEN / f"{name}.cert")
    alter(draft)
    file = folder / "forged.cert"
    assert seal(draft, file)
    return file


def with_evidence(name: str, **changed: Callable[[Any], np.ndarray]) -> Callable[[Draft], None]:
    """Returns an alteration of evidence, with all statements that follow from it.

    Args:
        name: A golden file.
        **changed: What each altered array becomes, computed from the true evidence.
    """

    def alter(draft: Draft) -> None:
        certificate = EXAMPLES[name].certify()
        evidence: Any = certificate.evidence
        altered = {field: change(evidence) for field, change in changed.items()}
        forgery = type(evidence).load({**evidence.tensors(), **altered}, evidence.settings())
        budgets = tuple(budget_of(statement["budget"]) for statement in draft.header["statements"])
        forged_draft = drafted(replace(certificate, evidence=forgery), budgets)
        draft.header, draft.arrays = forged_draft.header, forged_draft.arrays

    return alter
