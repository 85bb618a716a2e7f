"""What scores functions: a model, how its votes are counted, and how functions are read for it.

A trained run names all of this. Its data is not needed, so that a source tree can be scanned where only the run folder
is; nothing that the folder names is run unless the caller names it, as everywhere.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from agnncert.certificates.voting_rule import VotingRule
from agnncert.cli.folder import VOTE, RunFolder, find_run
from agnncert.cli.inputs import (
    is_module_spec,
    load_weights,
    make_division,
    settings_of_folder,
    stored_settings,
    user_model,
)
from agnncert.cli.settings import ModelSettings
from agnncert.divisions.base import Division
from agnncert.divisions.named import parse_division
from agnncert.divisions.node import NodeCentric
from agnncert.errors import ModelContractError, SettingsError
from agnncert.proving.certificate import load_certificate
from agnncert_code.bigvul import EDGES
from agnncert_code.features import features
from agnncert_code.reading import Edges, Embed
from agnncert_code.statements import load_detector

SUSPICIOUS = "vulnerable"


@dataclass(frozen=True)
class Detector:
    """A model that judges functions.

    Attributes:
        model: The trained module.
        division: A node-centric division: a statement has one group, in which it votes.
        vote: What empty groups cast, and the prior.
        edges: Which edges the graphs have.
        embed: Makes features from the texts of statements.
        class_names: What the classes are called.
        suspicious: The class that is looked for.
        name: What to call it.
    """

    model: Any
    division: Division
    vote: VotingRule | None = None
    edges: Edges = "flow"
    embed: Embed = features
    class_names: tuple[str, ...] = ("not listed", SUSPICIOUS)
    suspicious: int = 1
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.division, NodeCentric):
            raise SettingsError(
                f"{self.division} proves nothing about edited statements: an edit moves nodes. Use the node-centric "
                "division (--division node, in Python ac.NodeCentric)."
            )
        if not 0 <= self.suspicious < len(self.class_names):
            raise SettingsError(f"suspicious={self.suspicious}: the classes are {', '.join(self.class_names)}.")

    @property
    def flows(self) -> bool:
        """Whether edges between statements can change when others are edited."""
        return self.edges == "flow"


def detector_of_run(run: str | Path, named: ModelSettings | None = None) -> Detector:
    """The detector that a run has trained, voting as the run was certified, or else as it was trained.

    Args:
        run: Its folder.
        named: What the user names: other ``groups``; another vote (``empty``, ``prior``); the run's ``model``, which
            is required if it is code.

    Raises:
        SettingsError: There is no such run, it was not trained on functions, or its model is code that is not named.
        ModelContractError: It has no weights yet, or they do not fit.
    """
    named = named or ModelSettings()
    folder = find_run(run) if Path(run).is_dir() else None
    if folder is None:
        raise SettingsError(f"{run} is not the folder of a run: train one with agnncert train big-vul.")
    settings = settings_of_folder(folder, stored_settings(folder), None, named.model)
    about = folder.data
    if about.get("name") not in EDGES:
        raise SettingsError(
            f"{folder} was trained on {about.get('name') or 'other data'}, whose graphs are no functions: train a "
            "model on functions with agnncert train big-vul."
        )
    expected = int(features([""]).shape[1])
    if about.get("features") != expected:
        raise SettingsError(
            f"{folder} was trained on {about.get('features')} features for each statement, and this version makes "
            f"{expected}: train it again."
        )
    names = tuple(str(name) for name in about.get("class_names") or Detector.class_names)
    division, vote = _voting(folder, settings, named.with_class_numbers(names))
    return Detector(
        _trained(folder, settings, about),
        division,
        vote,
        EDGES[about["name"]],
        class_names=names,
        suspicious=names.index(SUSPICIOUS) if SUSPICIOUS in names else len(names) - 1,
        name=f"{settings.model} in {folder}",
    )


def _voting(folder: RunFolder, settings: ModelSettings, named: ModelSettings) -> tuple[Division, VotingRule | None]:
    """Division and vote as the user names them, else those of the run's certificate, else those of its training."""
    _, division = make_division(settings, "graph")
    vote = settings.vote
    if folder.certificate.is_file():
        certificate = load_certificate(folder.certificate)
        division, vote = parse_division(certificate.claim.division), certificate.vote
        if folder.read_json(VOTE).get("constant") is not None and named.vote is None:
            raise SettingsError(
                f"the vote that was chosen for {folder} counts statements and looks at none of them: certify it "
                "without --design-size, or give --prior."
            )
    if named.groups is not None:
        division = NodeCentric(named.groups, settings.hash or "md5")
    return division, named.vote or vote


def _trained(folder: RunFolder, settings: ModelSettings, about: dict[str, Any]) -> Any:
    if not folder.weights.is_file():
        raise ModelContractError(f"{folder} has no weights yet: finish its training first (agnncert train).")
    if not is_module_spec(settings.model or ""):
        return load_detector(folder.weights)
    width, classes = int(about["features"]), int(about.get("classes") or 2)
    known = dict.fromkeys(("in_channels", "num_features", "num_node_features"), width)
    known |= dict.fromkeys(("out_channels", "num_classes"), classes)
    given = {key: None if value == "none" else value for key, value in settings.set.items()}
    torch.manual_seed(settings.seed)
    return load_weights(user_model(str(settings.model), known, given), folder.weights)
