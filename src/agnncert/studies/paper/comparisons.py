"""The paper's three comparisons with other certified defences, remade: one row per dataset and defence.

Node injection against Bi-RS on the node datasets; edges against GNNCert-E, and edges with features against
GNNCert-EN, on the graph datasets. Rows are appended as they come, so the same call goes on where it stopped:

    python -m agnncert.studies.paper.comparisons [--root FOLDER] [--only DATASET ...]
"""

import argparse
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agnncert import __version__
from agnncert.baselines import BiRS, GNNCertE, GNNCertEN
from agnncert.datasets import dataset_digest, load_dataset
from agnncert.datasets.catalog import dataset_info
from agnncert.divisions import EdgeCentric, NodeCentric
from agnncert.proof.budget import Budget
from agnncert.proof.certificate import Certificate
from agnncert.proof.samples import SampleEvidence
from agnncert.studies.paper.rows import Row
from agnncert.studies.paper.run import edgeless_facts, machine, make_rows
from agnncert.studies.paper.spec import NODE_SETS, Contest, contests
from agnncert.studies.run import Defence, Outcome, Study, make_study, run
from agnncert.studies.threat import Threat
from agnncert.training.settings import recipe

log = logging.getLogger(__name__)

ROWS = Path("results/comparisons.jsonl")
NODE_SIZES = (*range(4), 5, 7, *range(10, 61, 5), *range(70, 101, 10), 120, 140, 150, 200)
GRAPH_SIZES = tuple(range(21))
EDGES_PER_INJECTED = (1, 5, 20, float("inf"))
TESTS = ("B2", "sharp", "legacy-unsound")

# GNNCert's ballots read all nodes of a graph, so each can be right on its own, and on the validation set of PROTEINS
# that trained it better than the loss of the vote. An epoch costs many plain ones then, and scoring 900 ballots of
# every validation graph more than an epoch: fewer of all of it.
_ALL_NODES = {"objective": "balanced", "epochs": 20, "groups_per_step": 4}
FIT: dict[str, dict[str, Any]] = {
    "gnncert-e": {**_ALL_NODES, "evaluate_every": 4},
    "gnncert-en": {**_ALL_NODES, "evaluate_every": 20, "patience": None},
}


def make_defence(contest: Contest) -> Defence:
    """The defence that a contest names."""
    groups = contest.num_groups
    made: dict[str, Callable[[], Defence]] = {
        "edge-centric": lambda: EdgeCentric(groups),
        "node-centric": lambda: NodeCentric(groups),
        "gnncert-e": lambda: GNNCertE(groups),
        "gnncert-en": lambda: GNNCertEN(groups, groups),
        "bi-rs": lambda: BiRS(contest.p_edge, contest.p_node),
    }
    return made[contest.defence]() if contest.defence in made else contest.defence


@dataclass(frozen=True)
class EvenSplit(Threat):
    """Edges and features in equal parts; one edge more where the size is odd."""

    def budgets(self, size: int) -> Iterator[Budget]:
        """Every way to add and delete the edges."""
        for deleted in range((size + 1) // 2 + 1):
            yield Budget(add_edges=(size + 1) // 2 - deleted, delete_edges=deleted, change_features=size // 2)


def threats(task: str) -> dict[str, Threat]:
    """The attacks of the three comparisons, by name."""
    if task == "node":
        return {f"injection, tau={tau:g}": Threat("injection", tau) for tau in EDGES_PER_INJECTED}
    both = "edges and features"
    return {"edges": Threat("edges"), both: Threat(both), f"{both}, even": EvenSplit(both)}


def run_contest(contest: Contest, root: str | Path | None = None, folder: Path | None = None) -> Row:
    """Trains, certifies and measures one defence; everything in one row."""
    data = load_dataset(contest.dataset, root=root, seed=contest.seed)
    study = make_study(
        data, fit_args=FIT.get(contest.defence), seed=contest.seed, defence=make_defence(contest),
        samples={"n0": 100, "n": contest.samples or 1, "alpha": 0.01, "scope": "each target"},
    )  # fmt: skip
    outcome = run(study, folder)
    certificate = outcome.certificate
    sizes = NODE_SIZES if study.task == "node" else GRAPH_SIZES
    return {
        "setting": contest.to_json(),
        "recipe": {"model": dict(study.model_args), "fit": dict(study.fit_args)},
        "version": __version__,
        "environment": machine(),
        "digests": {"data": dataset_digest(study.ready), **(certificate.claim.digests if certificate else {})},
        "targets": len(study.targets),
        "guarantee": outcome.guarantee,
        "accuracy": round(float((outcome.label == study.truth).mean()), 4),
        "accuracy_majority": round(float((study.truth == study.majority).mean()), 4),
        "sizes": list(sizes),
        "certified": _curves(study, outcome, sizes),
        "forward_passes": outcome.passes,
        "seconds_training": round(outcome.seconds_training, 2),
        "seconds_certification": round(outcome.seconds_certification, 3),
        "seconds_forward": round(outcome.seconds_forward, 5),
        **edgeless_facts(study, certificate),
    }


def _curves(study: Study, outcome: Outcome, sizes: tuple[int, ...]) -> dict[str, dict[str, list[float]]]:
    """Share of correct and certified labels by rule, attack and size."""
    right, curves = outcome.label == study.truth, dict[str, dict[str, list[float]]]()
    for name, threat in threats(study.task).items():
        for rule, withstood in _withstood(study, outcome, threat, sizes):
            share = [round(float((right & (withstood >= size)).mean()), 4) for size in sizes]
            curves.setdefault(rule, {})[name] = share
    return curves


def _withstood(study: Study, outcome: Outcome, threat: Threat, sizes: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """What each target withstands: as we certify it, and as it was published."""
    certificate = outcome.certificate
    if certificate is None:
        yield "certified", threat.withstood_without_certificate(outcome.defence, study.task, len(study.targets))
        return
    for rule, one in _by_test(certificate):
        yield rule, threat.withstood(one, sizes)
    published = _published(certificate, threat)
    if published is not None:
        yield "published rule", published


def _by_test(certificate: Certificate) -> Iterator[tuple[str, Certificate]]:
    """The same samples of Bi-RS under its different tests."""
    evidence = certificate.evidence
    if not isinstance(evidence, SampleEvidence):
        yield "certified", certificate
        return
    for test in TESTS:
        noise: Any = replace(evidence.noise, test=test)  # type: ignore[type-var]
        yield ("certified" if test == "B2" else test, replace(certificate, evidence=replace(evidence, noise=noise)))


def _published(certificate: Certificate, threat: Threat) -> Any:
    """The size that the paper's own rule allows, where it is another one.

    Edge-centric: every edge of an injected node counts, so the radius is divided by tau. GNNCert-EN: an edge
    or a node moves T ballots of T * T, so the radius is divided by T.
    """
    rule = getattr(certificate.evidence, "rule", "")
    if rule == "edge-centric/node":
        tau = threat.edges_per_injected
        return np.where(certificate.radius < 0, -1, 0 if np.isinf(tau) else certificate.radius // tau)
    if rule == "node-centric/node":
        return certificate.radius
    if rule == "gnncert-en/graph" and threat.kind == "edges and features":
        return certificate.radius // int(np.sqrt(certificate.claim.num_groups))
    return None


def run_comparisons(
    wanted: Iterable[Contest], file: Path = ROWS, root: str | Path | None = None, folder: Path | None = None
) -> list[Row]:
    """Rows of all contests; those that the file has already are not run again.

    Args:
        wanted: What to run.
        file: The file of rows.
        root: Folder that holds the datasets.
        folder: Where certificates and unfinished work are kept, if anywhere.
    """
    return make_rows(wanted, file, is_current, lambda contest: run_contest(contest, root, folder), _log)


def _log(number: int, total: int, contest: Contest, row: Row | None) -> None:
    if row is None:
        log.info("running %s", contest)


def is_current(row: Row, contest: Contest) -> bool:
    """Whether a row was made with the recipe that its contest has today."""
    model_args, fit_args = recipe(contest.dataset, dataset_info(contest.dataset).task)
    return bool(row["recipe"] == {"model": model_args, "fit": fit_args | FIT.get(contest.defence, {})})


def main() -> None:
    """Entry point of ``python -m agnncert.studies.paper.comparisons``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", help="folder that holds the datasets")
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--keep", type=Path, help="folder for certificates and unfinished work")
    parser.add_argument("--only", nargs="*", default=[*NODE_SETS, "aids", "proteins", "mutag", "dd"])
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    for dataset in options.only:
        run_comparisons(contests(dataset), options.rows, options.root, options.keep)


if __name__ == "__main__":
    main()
