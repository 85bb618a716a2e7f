"""``fit`` and ``subgraphs``: the entry points that check arguments and ask the defence about training."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

import torch

from agnncert.certificates.voting_rule import VotingRule
from agnncert.datasets.taught import settings_for_taught, teaching_of
from agnncert.datasets.threshold_part import RECORD as KEPT
from agnncert.datasets.threshold_part import kept_record
from agnncert.defence import AsDefence, FitOptions, GraphData, as_defence
from agnncert.engine.arguments import require_kinds, require_order
from agnncert.errors import suggests_arguments
from agnncert.graphs.in_parts import GraphInParts
from agnncert.models.build import build_model
from agnncert.recipes import data_of_model, recipe
from agnncert.training.loop import Step, train
from agnncert.training.settings import FitSettings, shows_settings

if TYPE_CHECKING:
    from torch_geometric.data import Data

Module = TypeVar("Module", bound=torch.nn.Module)


@overload
def fit(
    model: Module,
    data: GraphData,
    defence: AsDefence | None = None,
    *,
    voting_rule: VotingRule | None = None,
    checkpoint: str | Path | None = None,
    progress: Callable[[Step], None] | None = None,
    **settings: Unpack[FitSettings],
) -> Module: ...
@overload
def fit(
    model: str | None,
    data: GraphData,
    defence: AsDefence | None = None,
    *,
    voting_rule: VotingRule | None = None,
    checkpoint: str | Path | None = None,
    progress: Callable[[Step], None] | None = None,
    **settings: Unpack[FitSettings],
) -> torch.nn.Module: ...
@shows_settings
def fit(
    model: torch.nn.Module | str | None,
    data: GraphData,
    defence: AsDefence | None = None,
    *,
    voting_rule: VotingRule | None = None,
    checkpoint: str | Path | None = None,
    progress: Callable[[Step], None] | None = None,
    **settings: Unpack[FitSettings],
) -> torch.nn.Module:
    """Trains a model in place and returns it in eval mode, with the weights that are best on the validation part.

    The name of a built-in model stands for an untrained one: ``ac.fit("gcn", data, defence)`` builds it, and trains it
    with the settings of ``ac.recipe(data, "gcn")`` where you give no others.

    ``model.training_record`` holds the settings and the history, for ``save_model``.

    Args:
        model: Any module; see ``certify`` for how it is called.
        data: A ``Data`` with ``y``, ``train_mask`` and ``val_mask``, or a ``GraphSet`` with ``train`` and ``val``.
        defence: A division: train on its subgraphs too; ``None`` trains a plain, undefended model. A division of your
            own is trained on ``groups_per_step`` of its subgraphs in each step, one forward pass for each, and scored
            at every evaluation with one forward pass for each of its subgraphs. A
            smoothing defence, such as ``ac.baselines.BiRS()``: train under its noise, sampled anew for each step.
            ``StackedVotes()``: train copies of the model without edges, and votes of neighbours on top; returns a new
            module. The model may then be None: only edges vote.
        epochs: Passes over the training set.
        lr: Learning rate of Adam.
        weight_decay: Weight decay of Adam.
        clip: Largest norm of the gradient, or ``None``.
        batch_size: Graphs per step (graph task).
        objective: "balanced" averages each term separately; "paper" is the paper's sum over T + 1 graphs; "vote" (graph
            task) is the loss of the vote of all subgraphs of a graph; "certified" (node task) has the loss of
            "balanced" and keeps the weights that certify most validation nodes with the best prior, which
            ``choose_voting_rule`` then finds. Defaults to "balanced" for nodes and "vote" for graphs.
        size: Keep the weights with the best *certified* ``measure`` at this perturbation size; 0 for that of the vote.
            With "certified" the size that is trained for.
        against: What the size counts with "certified", as for ``choose_voting_rule``: "any" change, or "structure".
        no_edge_weight: Node task: weight of the loss of the prediction without edges; the other terms have weight 1.
        balance_classes: Whether all classes have the same weight in the loss. Defaults to whether a class is rare: has
            less than 15 % of an equal share of the training part (7.5 % of two classes).
        measure: What the weights are kept by: "accuracy"; "balanced", the mean recall of the classes; or, for two
            classes, "recall@0.01": the recall of the rarer one with the threshold that has this false positive rate
            without an attack, which ``choose_threshold`` then finds. With a size, what is certified of it. Defaults to
            "balanced" if classes are balanced, else "accuracy".
        groups_per_step: Subgraphs that are sampled in each step. Defaults to all (graph task) or 8 (GNNCert, and
            divisions of your own). Node classifiers with other divisions always use all subgraphs.
        clusters: Node task: train a large graph in about this many clusters (Cluster-GCN; needs pymetis). Certificates
            do not depend on it.
        clusters_per_step: Clusters that a step joins, with the edges among them.
        protocol: Node task: "inductive" hides the test nodes and their edges in training. "held-out" hides the
            validation nodes too, until weights are scored, so that ``choose_voting_rule`` chooses on nodes that the
            model was not trained with. Defaults to "transductive"; of taught data (``teach``) to that of the teacher.
        evaluate_every: Epochs between two evaluations on the validation set.
        patience: Stop after this many evaluations without improvement; ``None`` never stops early.
        seed: Seed of training; torch's global random state is not changed.
        voting_rule: The voting rule that ``certify`` will be given. The weights that are best under it are kept. The
            loss does not depend on it.
        checkpoint: File to which the state is written at every evaluation. An interrupted run that is started again
            with the same arguments continues from there and ends with the same weights.
        progress: Called after every epoch.

    Raises:
        SettingsError: A setting is unknown or not valid, the checkpoint belongs to another run, or the loss diverges.
        DatasetError: Labels or splits are missing or do not fit the model.
        ModelContractError: The model cannot be called as documented, or has nothing to train.
    """
    if isinstance(model, str):
        require_kinds(data=data, defence=defence)
        chosen = None if defence is None else as_defence(defence)
        if isinstance(data, GraphInParts):
            return fit(
                build_model(model, data, seed=settings.get("seed", 0)),
                data,
                defence,
                voting_rule=voting_rule,
                checkpoint=checkpoint,
                progress=progress,
                **settings,
            )
        usual = recipe(data, model, objective=settings.get("objective"), defence=chosen)
        model = build_model(model, data_of_model(data, chosen), seed=settings.get("seed", 0), **usual.model)
        settings = {**usual.fit, **settings}  # type: ignore[typeddict-item]
    teaching = None if data is None else teaching_of(data)
    given = dict(settings) if teaching is None else settings_for_taught(settings, teaching)
    options = FitOptions(given, voting_rule, checkpoint, progress)
    if model is None:
        require_kinds(data=data, defence=defence)
    else:
        require_order(model, data, defence)
    untrained: Any = model  # some defences need none; train refuses None
    trained: torch.nn.Module = (
        train(untrained, data, None, options) if defence is None else as_defence(defence).fit(untrained, data, options)
    )
    noted: dict[str, Any] = {} if teaching is None else {"teaching": teaching.to_json()}
    kept = kept_record(data)
    if kept is not None:
        noted[KEPT] = kept
    if noted:
        record = {**getattr(trained, "training_record", {}), **noted}
        trained.training_record = record  # type: ignore[assignment]  # any attribute may be set on a module
    return trained


@suggests_arguments
def subgraphs(data: GraphData, defence: AsDefence) -> "Sequence[Data]":
    """Returns the subgraphs on which a model votes, so that a training loop of your own can train on them.

    The result has a length, can be indexed, and is a dataset for PyG's ``DataLoader``:
    ``DataLoader(ac.subgraphs(data, ac.NodeCentric(60)), batch_size=8, shuffle=True)``. ``ac.vote_loss`` is the loss of
    a vote. ``fit`` does the same much faster where it can, because it evaluates all subgraphs at once.

    Args:
        data: The graph, or list of graphs.
        defence: A division, built in or your own.

    Raises:
        SettingsError: The defence has no subgraphs.
        GraphError: The data cannot be used.
    """
    require_kinds(data=data, defence=defence)
    return as_defence(defence).subgraphs(data)
