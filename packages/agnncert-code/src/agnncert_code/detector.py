"""Detectors of vulnerable functions: the vote of statements, which is the usual one, and networks of a run folder.

``fit_detector`` fits a vote of statements to Big-Vul and stores it in a folder. ``load_detector`` loads such a folder,
or the run folder of ``agnncert train big-vul``. The dataset is not needed. ``measure_accuracy`` compares a detector
with a threshold on the length of a function, on functions that neither of them was fitted to.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.certifier import certify
from agnncert.cli.folder import RunFolder, find_run
from agnncert.cli.models import load_weights
from agnncert.cli.settings import DefenceSettings, stored_settings
from agnncert.cli.studies import load_run_data, settings_of_folder
from agnncert.cli.user_code import is_module_spec, user_model
from agnncert.datasets.catalog import default_root
from agnncert.datasets.splits import GraphSet
from agnncert.divisions.base import Division
from agnncert.divisions.named import division_named, parse_division
from agnncert.divisions.node import PerNeighbour
from agnncert.errors import ModelContractError, SettingsError
from agnncert.models.io import load_description, save_model
from agnncert.proving.certificate import load_certificate
from agnncert.storage import parse_json, write_atomic
from agnncert_code.bigvul import CLASS_NAMES, EDGES, load_big_vul
from agnncert_code.features import features, pieces, split
from agnncert_code.findings import Accuracy
from agnncert_code.reading import Edges, Embed
from agnncert_code.statement_fit import fit_statements
from agnncert_code.statements import NAME, NEVER, load_function_model

SUSPICIOUS = "vulnerable"
NO_VOTE = "no vote"
WEIGHTS = "weights.safetensors"
ACCURACY = "accuracy.json"


@dataclass(frozen=True)
class Detector:
    """A model that labels functions, and how functions are read for it.

    Attributes:
        model: The trained module.
        division: A node-centric division: every statement is in one group and votes there.
        voting_rule: What empty groups vote for, and the prior.
        edges: Which edges the graphs have.
        embed: Computes features from the texts of statements.
        class_names: Names of the classes.
        suspicious: The class that a scan looks for.
        name: Description for reports.
        accuracy: Measured accuracy with this division and voting rule, or None if unknown.
    """

    model: nn.Module | Callable[..., Tensor]
    division: Division
    voting_rule: VotingRule | None = None
    edges: Edges = "flow"
    embed: Embed = features
    class_names: tuple[str, ...] = tuple(CLASS_NAMES)
    suspicious: int = 1
    name: str = ""
    accuracy: Accuracy | None = None

    def __post_init__(self) -> None:
        if not self.division.divides_nodes:
            raise SettingsError(
                f"{self.division} proves nothing about edited statements: an edit changes nodes. Use the node-centric "
                "division (--division node, in Python ac.NodeCentric)."
            )
        if not 0 <= self.suspicious < len(self.class_names):
            raise SettingsError(f"suspicious={self.suspicious}: the classes are {', '.join(self.class_names)}.")

    @property
    def flows(self) -> bool:
        """Whether edges between two statements can change when a third one is edited."""
        return self.edges == "flow"


def fit_detector(
    out: str | Path, root: str | Path | None = None, *, size: int = 0, seed: int = 0, matched: bool = False
) -> Detector:
    """Fits a vote of statements to Big-Vul, measures its accuracy on the test part, and stores both in a folder.

    Args:
        out: The folder. It must be empty, or hold an earlier detector, which is replaced.
        root: Folder with the datasets. Defaults to the one that ``load_dataset`` uses.
        size: Number of edited statements for which limits and prior are chosen. 0 gives the best accuracy.
        seed: Seed of the split and of the drawn functions.
        matched: Whether to use ``big-vul-matched``, where both classes have equally long functions.

    Raises:
        SettingsError: The folder holds something else.
        DatasetError: Big-Vul is not below ``root``.
    """
    out = Path(out)
    is_empty = not out.exists() or (out.is_dir() and not any(out.iterdir()))
    if not is_empty and not is_statement_run(out):
        raise SettingsError(f"{out} is not empty and holds no vote of statements: choose another folder.")
    data = load_big_vul(Path(root or default_root()), seed, matched, embed=pieces)
    name = "big-vul-matched" if matched else "big-vul"
    fitted = fit_statements(data, size, seed=seed)
    detector = _statement_detector(out, fitted.model, fitted.voting_rule)
    (out / ACCURACY).unlink(missing_ok=True)
    provenance = {"data": name, "seed": seed, "size": size, "voting_rule": fitted.voting_rule.to_json()}
    save_model(fitted.model, out / WEIGHTS, provenance)
    _store(out, detector, measure_accuracy(detector, data, name))
    return load_detector(out)


def measure_run(run: str | Path, root: str | Path | None = None, model: str | None = None) -> Accuracy:
    """Measures the accuracy of a run on the test part of its dataset, and stores it in the run folder.

    Args:
        run: The run folder.
        root: Folder with the datasets.
        model: The model of the run again, if it is ``package.module:factory``.

    Raises:
        SettingsError: The run was trained on other data than the dataset has now.
    """
    detector = load_detector(run, model=model)
    folder = Path(run)
    datasets = Path(root or default_root())
    if is_statement_run(folder):
        provenance = load_description(folder / WEIGHTS)["provenance"]
        name = str(provenance["data"])
        data = load_big_vul(datasets, int(provenance["seed"]), matched=name == "big-vul-matched", embed=pieces)
    else:
        run_folder = RunFolder(folder)
        name = str(run_folder.data["name"])
        data = load_run_data(run_folder, str(datasets))
    accuracy = measure_accuracy(detector, data, name)
    _store(folder, detector, accuracy)
    return accuracy


def measure_accuracy(detector: Detector, data: GraphSet, name: str = "") -> Accuracy:
    """Measures the accuracy of a detector, and of a threshold on the number of tokens, on labelled functions.

    Args:
        detector: The detector. It must not have been fitted to the test part.
        data: A ``GraphSet`` whose graphs have the features that the detector reads. Its test part is used.
        name: Name of the dataset. Defaults to that of ``data``.
    """
    truth = data.y.numpy() == detector.suspicious
    num_tokens = np.array([_num_tokens(graph) for graph in data])
    test = data.test.numpy()
    others = np.concatenate([data.train.numpy(), data.val.numpy()])
    certificate = certify(detector.model, data, detector.division, targets=data.test, voting_rule=detector.voting_rule)
    threshold = _best_threshold(num_tokens[others], truth[others])
    of_detector = _Rates.of(certificate.label == detector.suspicious, truth[test])
    of_length = _Rates.of(num_tokens[test] > threshold, truth[test])
    return Accuracy(
        data=name or data.name,
        functions=len(test),
        detector=of_detector.accuracy,
        detector_balanced=of_detector.balanced,
        length=of_length.accuracy,
        length_balanced=of_length.balanced,
        tokens=threshold,
    )


def _num_tokens(graph: Data) -> int:
    return sum(len(split(node_id.split(" ", 1)[1])) for node_id in graph.node_id)


def _best_threshold(num_tokens: IntArray, truth: BoolArray) -> int:
    """Returns the number of tokens above which functions are best called vulnerable, by balanced accuracy."""

    def balanced(threshold: int) -> float:
        return _Rates.of(num_tokens > threshold, truth).balanced

    return int(max(np.unique(num_tokens).tolist(), key=balanced))


class _Rates(NamedTuple):
    """Accuracy and balanced accuracy, the mean over both classes."""

    accuracy: float
    balanced: float

    @classmethod
    def of(cls, called: BoolArray, truth: BoolArray) -> "_Rates":
        is_right = called == truth
        of_classes = [is_right[truth == value].mean() for value in np.unique(truth)]
        return cls(float(is_right.mean()), float(np.mean(of_classes)))


def is_statement_run(folder: str | Path) -> bool:
    """Returns whether a folder holds a vote of statements, as ``fit_detector`` stores it."""
    weights = Path(folder) / WEIGHTS
    if not weights.with_suffix(".json").is_file():
        return False
    config = load_description(weights)["model"] or {}
    return config.get("name") == NAME


def load_detector(run: str | Path, prior: tuple[int, ...] | None = None, model: str | None = None) -> Detector:
    """Loads the detector of a folder, with the voting rule that it was fitted or certified with.

    Args:
        run: A folder of ``fit_detector``, or the run folder of ``agnncert train big-vul``.
        prior: Another prior: votes with which "not listed" and "vulnerable" start. The accuracy is then unknown.
        model: The model of the run again. Required if it is ``package.module:factory``, which is never imported because
            a folder names it.

    Raises:
        SettingsError: There is no such run, it was not trained on functions, or its model is code that is not named.
        ModelContractError: The weights are missing or do not fit the model.
    """
    detector = _load_statements(Path(run), prior) if is_statement_run(run) else _load_network(run, prior, model)
    return _with_accuracy(detector, Path(run))


def _load_statements(folder: Path, prior: tuple[int, ...] | None) -> Detector:
    try:
        voting_rule = VotingRule(**load_description(folder / WEIGHTS)["provenance"]["voting_rule"])
    except (KeyError, TypeError) as error:
        raise SettingsError(f"{folder} states no voting rule: fit the detector again.") from error
    if prior is not None:
        voting_rule = VotingRule(voting_rule.empty, (*prior, NEVER))
    return _statement_detector(folder, load_function_model(folder / WEIGHTS), voting_rule)


def _statement_detector(folder: Path, model: nn.Module, voting_rule: VotingRule) -> Detector:
    return Detector(
        model,
        PerNeighbour(),
        voting_rule,
        edges="none",
        embed=pieces,
        class_names=(*CLASS_NAMES, NO_VOTE),
        suspicious=CLASS_NAMES.index(SUSPICIOUS),
        name=f"vote of statements in {folder}",
    )


def _load_network(run: str | Path, prior: tuple[int, ...] | None, model: str | None) -> Detector:
    folder = find_run(run) if Path(run).is_dir() else None
    if folder is None:
        raise SettingsError(
            f"{run} is not the folder of a detector: make one with agnncert scan --fit --run {run} (a vote of "
            "statements), or with agnncert train big-vul (a network)."
        )
    settings = settings_of_folder(folder, stored_settings(folder), None, model)
    about = folder.data
    if about.get("name") not in EDGES:
        raise SettingsError(
            f"{folder} was trained on {about.get('name') or 'other data'}, whose graphs are no functions: fit a "
            f"detector with agnncert scan --fit, or train one with agnncert train big-vul."
        )
    expected = int(features([""]).shape[1])
    if about.get("features") != expected:
        raise SettingsError(
            f"{folder} was trained on {about.get('features')} features for each statement, and this version computes "
            f"{expected}: train it again."
        )
    names = tuple(str(name) for name in about.get("class_names") or CLASS_NAMES)
    division, voting_rule = _voting(folder, settings, names, prior)
    return Detector(
        _trained(folder, settings, about),
        division,
        voting_rule,
        EDGES[about["name"]],
        class_names=names,
        suspicious=names.index(SUSPICIOUS) if SUSPICIOUS in names else len(names) - 1,
        name=f"{settings.model} in {folder}",
    )


def _voting(
    folder: RunFolder, settings: DefenceSettings, names: tuple[str, ...], prior: tuple[int, ...] | None
) -> tuple[Division, VotingRule | None]:
    """Returns division and voting rule of the run's certificate, or of its training. A given prior comes first."""
    if folder.certificate.is_file():
        certificate = load_certificate(folder.certificate)
        division = parse_division(certificate.claim.division)
        voting_rule = certificate.voting_rule
        if folder.certified_weights.is_file() and prior is None:
            raise SettingsError(
                f"the model that was certified in {folder} counts statements without reading them: certify it without "
                "choosing a rule, or give --prior."
            )
    else:
        division = division_named(settings.division or "node", settings.groups, settings.hash or "md5", "graph")
        voting_rule = settings.voting_rule(names)
    if prior is not None:
        voting_rule = VotingRule(None if voting_rule is None else voting_rule.empty, prior)
    return division, voting_rule


def _trained(folder: RunFolder, settings: DefenceSettings, about: dict[str, Any]) -> nn.Module:
    if not folder.weights.is_file():
        raise ModelContractError(f"{folder} has no weights yet: finish its training first (agnncert train).")
    if not is_module_spec(settings.model or ""):
        return load_function_model(folder.weights)
    num_features = int(about["features"])
    num_classes = int(about.get("classes") or 2)
    of_data = {
        "in_channels": num_features,
        "num_features": num_features,
        "num_node_features": num_features,
        "out_channels": num_classes,
        "num_classes": num_classes,
    }
    of_user = {key: None if value == "none" else value for key, value in settings.set.items()}
    torch.manual_seed(settings.seed)
    return load_weights(user_model(str(settings.model), of_data, of_user), folder.weights)


def _key(folder: Path, detector: Detector) -> dict[str, Any]:
    """Returns what a measured accuracy belongs to: weights, division and voting rule."""
    voting_rule = None if detector.voting_rule is None else detector.voting_rule.to_json()
    return {
        "weights": load_description(folder / WEIGHTS)["sha256"],
        "division": str(detector.division),
        "voting_rule": voting_rule,
    }


def _store(folder: Path, detector: Detector, accuracy: Accuracy) -> None:
    table = {**_key(folder, detector), "accuracy": asdict(accuracy)}
    write_atomic(folder / ACCURACY, json.dumps(table, indent=1) + "\n")


def _with_accuracy(detector: Detector, folder: Path) -> Detector:
    """Returns the detector with the accuracy that its folder states for the same weights, division and rule."""
    file = folder / ACCURACY
    if not file.is_file():
        return detector
    try:
        stored = parse_json(file.read_text("utf-8"))
        key = json.loads(json.dumps(_key(folder, detector)))
        if any(stored[name] != value for name, value in key.items()):
            return detector
        accuracy = Accuracy(**stored["accuracy"])
        accuracy.check()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SettingsError(f"{file} is damaged: {error}. Delete it, or measure the run again.") from error
    return replace(detector, accuracy=accuracy)
