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
from agnncert.proof.evidence import BallotEvidence
from agnncert.proof.samples import SampleEvidence
from agnncert.studies.comparison import Threat, make_setup
from agnncert.studies.defended import GRAPH_FREE, Defence, Defended, Setup, defend
from agnncert.studies.paper.rows import Row, append_row, read_rows, row_key
from agnncert.studies.paper.run import machine
from agnncert.studies.paper.spec import NODE_SETS, Contest, contests
from agnncert.training.settings import recipe

log = logging.getLogger(__name__)

ROWS = Path("results/comparisons.jsonl")
NODE_SIZES = (0, 1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 70, 80, 90, 100, 120, 140, 150, 200)
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
    setup = make_setup(
        data, fit_args=FIT.get(contest.defence), seed=contest.seed, folder=folder,
        samples={"n0": 100, "n": contest.samples or 1, "alpha": 0.01, "scope": "each target"},
    )  # fmt: skip
    defended = defend(setup, make_defence(contest))
    right = defended.label == setup.truth
    sizes = NODE_SIZES if setup.task == "node" else GRAPH_SIZES
    return {
        "setting": contest.to_json(),
        "recipe": {"model": dict(setup.model_args), "fit": dict(setup.fit_args)},
        "version": __version__,
        "environment": machine(),
        "digests": {"data": dataset_digest(data), **_digests(defended)},
        "targets": len(right),
        "guarantee": defended.guarantee,
        "accuracy": round(float(right.mean()), 4),
        "accuracy_majority": round(float((setup.truth == setup.majority).mean()), 4),
        "sizes": list(sizes),
        "certified": _curves(setup, defended, right, sizes),
        "forward_passes": defended.passes,
        "seconds_training": round(defended.seconds_training, 2),
        "seconds_certification": round(defended.seconds_certification, 3),
        "seconds_forward": round(defended.seconds_forward, 5),
        **_votes(defended, setup),
    }


def _digests(defended: Defended) -> dict[str, str]:
    return {} if defended.certificate is None else dict(defended.certificate.claim.digests)


def _curves(setup: Setup, defended: Defended, right: Any, sizes: tuple[int, ...]) -> dict[str, dict[str, list[float]]]:
    """Share of correct and certified labels by rule, attack and size."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, threat in threats(setup.task).items():
        for rule, withstood in _withstood(setup, defended, threat, sizes):
            share = [round(float((right & (withstood >= size)).mean()), 4) for size in sizes]
            found.setdefault(rule, {})[name] = share
    return found


def _withstood(setup: Setup, defended: Defended, threat: Threat, sizes: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """What each target withstands: as we certify it, and as it was published."""
    certificate = defended.certificate
    if certificate is None:
        immune = defended.defence == GRAPH_FREE and threat.leaves_graph_free(setup.task)
        yield "certified", np.full(len(setup.targets), np.inf if immune else 0.0)
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


def _votes(defended: Defended, setup: Setup) -> Row:
    """How much of the vote is the prediction without edges (node task)."""
    evidence = None if defended.certificate is None else defended.certificate.evidence
    if not isinstance(evidence, BallotEvidence) or setup.task != "node":
        return {}
    edgeless = evidence.votes.default
    return {
        "accuracy_edgeless": round(float((edgeless == setup.truth).mean()), 4),
        "vote_differs_from_edgeless": round(float((edgeless != defended.label).mean()), 4),
    }


def run_comparisons(
    wanted: Iterable[Contest], file: Path = ROWS, root: str | Path | None = None, folder: Path | None = None
) -> list[Row]:
    """Rows of all contests: those that the file has already, and the others, run and appended one by one.

    A row that was made with another recipe than today's is made again.

    Args:
        wanted: What to run.
        file: The file of rows.
        root: Folder that holds the datasets.
        folder: Where certificates and unfinished work are kept, if anywhere.
    """
    done = {row["key"]: row for row in read_rows(file)}
    rows = []
    for contest in wanted:
        key = row_key(contest.to_json())
        if key not in done or not is_current(done[key], contest):
            log.info("running %s", contest)
            done[key] = {"key": key, **run_contest(contest, root, folder)}
            append_row(file, done[key])
        rows.append(done[key])
    return rows


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
