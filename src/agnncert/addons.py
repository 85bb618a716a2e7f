"""Parts that are found by name: those of this library, and those of installed add-on packages.

An add-on package names its parts in entry points; what this library brings itself stands in ``_OWN`` in the same form.

========================  ================================================================================
group                     what an entry point is
========================  ================================================================================
``agnncert.commands``     a function that becomes a command of ``agnncert``
``agnncert.datasets``     ``load(root: Path, seed: int)``, which ``load_dataset`` calls for the entry's name
``agnncert.attack_units`` ``unit(certificate)``, a further unit in which reports on a dataset state results
``agnncert.names``        a public name of the package ``agnncert``
``agnncert.defences``     a class of defences (``agnncert.defence``), by the kind of evidence in certificate files
``agnncert.evidence``     its class of evidence (``proving.evidence``), by the same name
``agnncert.verifier``     the class that derives the statements of such files again (``verifier.kinds``)
``agnncert.defence_names`` a class of defences, by the name that commands and comparisons know it by
``agnncert.divisions``    a named division (``divisions.named``), by the name that commands know it by
``agnncert.theorem_facts`` what is known about a division, by the name that its theorems begin with
``agnncert.theorems``     what proves with its theorems (``divided.theorems``), by task
``agnncert.theorem_recounts`` what derives their statements again (``verifier.theorems``), by task
``agnncert.theorem_contests`` what its theorems say as contests (``contest.kinds.theorem``), by task
``agnncert.live``         ``live(defence, model, data, **settings)``: a live graph, by the kind of evidence
``agnncert.attack_problems`` a class of ``attacks.problem``, by the kind of evidence; other kinds are attacked by scores
``agnncert.models``       ``build(config, build_part)``: the untrained model that a description names
``agnncert.training``     ``clusters``: the training objective on parts of a graph
``agnncert.controls``     ``control(study, certificate, sizes)``: measures by name and size, shown beside the curves
========================  ================================================================================
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from agnncert.errors import missing

_OWN = {
    "agnncert.defences": {
        "votes": "agnncert.divided.defence:Divided",
        "stacked": "agnncert.stacked.defence:StackedVotes",
        "labels": "agnncert.labels.defence:LabelVotes",
        "labels-and-edges": "agnncert.labels.defence:LabelVotes",
        "isolated": "agnncert.isolated.defence:IsolatedModels",
        "pairs": "agnncert.pairs.defence:PairVotes",
        "append": "agnncert.append.defence:AppendOnly",
        "graph-votes": "agnncert.graph_votes.defence:GraphVotes",
    },
    "agnncert.defence_names": {
        "stacked": "agnncert.stacked.defence:StackedVotes",
        "labels": "agnncert.labels.defence:LabelVotes",
        "isolated": "agnncert.isolated.defence:IsolatedModels",
        "pairs": "agnncert.pairs.defence:PairVotes",
        "append-only": "agnncert.append.defence:AppendOnly",
        "graph-votes": "agnncert.graph_votes.defence:GraphVotes",
        "structure-only": "agnncert.graph_votes.defence:GraphVotes",
        "bag-of-nodes": "agnncert.graph_votes.defence:GraphVotes",
    },
    "agnncert.evidence": {
        "votes": "agnncert.divided.evidence:VoteEvidence",
        "stacked": "agnncert.stacked.evidence:StackedEvidence",
        "labels": "agnncert.labels.evidence:LabelEvidence",
        "labels-and-edges": "agnncert.labels.joint_evidence:JointEvidence",
        "isolated": "agnncert.isolated.evidence:IsolatedEvidence",
        "pairs": "agnncert.pairs.evidence:PairEvidence",
        "append": "agnncert.append.evidence:AppendEvidence",
        "graph-votes": "agnncert.graph_votes.evidence:GraphEvidence",
    },
    "agnncert.verifier": {
        "votes": "agnncert.verifier.check_votes:VotesFile",
        "stacked": "agnncert.verifier.check_stacked:StackedFile",
        "labels": "agnncert.verifier.check_labels:LabelsFile",
        "labels-and-edges": "agnncert.verifier.check_joint:JointFile",
        "isolated": "agnncert.verifier.check_isolated:IsolatedFile",
        "pairs": "agnncert.verifier.check_pairs:PairsFile",
        "append": "agnncert.verifier.check_append:AppendFile",
        "graph-votes": "agnncert.verifier.check_graph_votes:GraphVotesFile",
    },
    "agnncert.theorem_facts": {
        "edge-centric": "agnncert.divided.facts.edge_centric:EDGE_CENTRIC",
        "node-centric": "agnncert.divided.facts.node_centric:NODE_CENTRIC",
        "gated": "agnncert.divided.facts.gated:GATED",
        "custom": "agnncert.divided.facts.custom:CUSTOM",
        "per-neighbour": "agnncert.divided.facts.per_neighbour:PER_NEIGHBOUR",
        "per-pair": "agnncert.divided.facts.per_pair:PER_PAIR",
    },
    "agnncert.theorems": {
        "edge-centric": "agnncert.divided.theorems.edge_centric:THEOREMS",
        "node-centric": "agnncert.divided.theorems.node_centric:THEOREMS",
        "gated": "agnncert.divided.theorems.gated:THEOREMS",
        "custom": "agnncert.divided.theorems.custom:THEOREMS",
        "per-neighbour": "agnncert.divided.theorems.per_neighbour:THEOREMS",
        "per-pair": "agnncert.divided.theorems.per_pair:THEOREMS",
    },
    "agnncert.theorem_recounts": {
        "edge-centric": "agnncert.verifier.theorems.edge_centric:THEOREMS",
        "node-centric": "agnncert.verifier.theorems.node_centric:THEOREMS",
        "gated": "agnncert.verifier.theorems.node_centric:GATED",
        "custom": "agnncert.verifier.theorems.custom:THEOREMS",
        "per-neighbour": "agnncert.verifier.theorems.per_neighbour:THEOREMS",
        "per-pair": "agnncert.verifier.theorems.per_pair:THEOREMS",
    },
    "agnncert.theorem_contests": {
        "edge-centric": "agnncert.contest.kinds.theorems.edge_centric:THEOREMS",
        "node-centric": "agnncert.contest.kinds.theorems.node_centric:THEOREMS",
        "gated": "agnncert.contest.kinds.theorems.node_centric:GATED",
        "custom": "agnncert.contest.kinds.theorems.custom:THEOREMS",
        "per-neighbour": "agnncert.contest.kinds.theorems.per_neighbour:THEOREMS",
        "per-pair": "agnncert.contest.kinds.theorems.per_pair:THEOREMS",
    },
    "agnncert.attack_problems": {
        "votes": "agnncert.attacks.vote_problem:VoteProblem",
        "pairs": "agnncert.attacks.pair_attack:PairProblem",
        "undefended": "agnncert.attacks.plain_model:PlainProblem",
        "graph-votes": "agnncert.attacks.graph_attack:GraphProblem",
        "append": "agnncert.attacks.append_attack:AppendProblem",
    },
    "agnncert.models": {
        "stacked-votes": "agnncert.stacked.defence:model_from_config",
        "label-votes": "agnncert.labels.defence:model_from_config",
        "isolated-models": "agnncert.isolated.defence:model_from_config",
        "pair-votes": "agnncert.pairs.defence:model_from_config",
        "append-only": "agnncert.append.defence:model_from_config",
        "graph-votes": "agnncert.graph_votes.defence:model_from_config",
    },
}


# Kinds of evidence that add-on packages have: the package, and what it is needed for.
ADD_ON_KINDS = {"samples": ("agnncert_peers", "a certificate from random samples")}
# The same for divisions, by the name that their theorems begin with.
ADD_ON_DIVISIONS = dict.fromkeys(
    ("gnncert-e", "gnncert-n", "gnncert-en"), ("agnncert_peers", "a certificate of GNNCert")
)


@cache  # to read the metadata of all installed packages takes 20 milliseconds
def addons(group: str) -> dict[str, EntryPoint]:
    """Returns the entry points of ``group`` by name, not loaded yet. Nobody can replace a part of this library."""
    found = {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}
    return found | {name: EntryPoint(name, value, group) for name, value in _OWN.get(group, {}).items()}


def addon(group: str, name: str, package: str, purpose: str) -> Any:
    """Returns what the entry point ``name`` of ``group`` stands for.

    Raises:
        MissingPackage: No installed package has it; names the package that would, and what it is needed for.
    """
    point = addons(group).get(name)
    if point is None:
        raise missing(package, purpose)
    return point.load()


def config_of(model: object) -> dict[str, Any] | None:
    """Returns the description from which a model can be built again, or ``None`` for a module of somebody else.

    Such a module may have an attribute ``config`` too, or inherit it from a built-in model whose ``forward`` it
    replaces. Built from that description, it would be another model.
    """
    config = getattr(model, "config", None)
    if not isinstance(config, dict):
        return None
    is_own = type(model).__module__.startswith(("agnncert.", "agnncert_"))  # of this library or one of its add-ons
    return config if is_own or config.get("name") in addons("agnncert.models") else None
