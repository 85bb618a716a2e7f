"""The table of the page that says which defence to choose: one line a situation, with figures from rows."""

from collections.abc import Sequence

from experiments.documentation import facts, sources
from experiments.documentation.facts import percent, table
from experiments.documentation.sources import Row, mean, some
from experiments.documentation.tables import LABEL_SIZES, PAIR_SIZES

TITLES = ("an attacker changes", "your data", "train with", "certified, in %", "beside it, in %")
GRAPH_SIZES = (0, 1, 2, 5, 10, 20)  # poisoned training graphs, as in the script
BLIND_SIZES = (0, 1, 2, 3, 5)
JOINT_LABELS, JOINT_EDGES = (0, 1, 2, 5, 10, 20), (0, 1, 2, 3, 5)
ETHEREUM = "ethereum-phishing"


def choosing() -> str:
    """Returns the table: what an attacker changes, the data, the command, and what it certifies."""
    return table(TITLES, [*_graphs_of_nodes(), *_fraud(), *_training(), *_other_tasks()], words=len(TITLES))


def _command(words: str, page: str) -> str:
    """Returns options of ``agnncert train`` as a link to the page that describes them."""
    return f"[`{words}`]({page})"


def _graphs_of_nodes() -> list[list[str]]:
    """Nodes are classified, and the graph changes after training."""
    many = [percent(facts.stacked("amazon-c", size, more=facts.STANDARD)) for size in (1, 3)]
    node = percent(facts.field("cora-ml", "30 %", "AGNNCert-N", "added edges", 1))
    mlps = percent(facts.field("cora-ml", "30 %", "graph-free MLP ensemble", "added edges", 1))
    taught, untaught = (
        percent(facts.field("cora-ml", f"20 per class, {way}", name, "added edges", 1))
        for way, name in (("taught", "stacked votes"), ("untaught", "graph-free MLP ensemble"))
    )
    taught_mlps = percent(facts.field("cora-ml", "20 per class, taught", "graph-free MLP ensemble", "added edges", 1))
    trusted = [percent(facts.trusted("cora-ml", 0.5, size)) for size in (1, 5)]
    return [
        [
            "edges, other nodes and their features",
            "many neighbours",
            _command("--division stacked --size 1", "stacked-votes.md"),
            f"Amazon-C, 1 / 3 changes: {' / '.join(many)}",
            f"no edges: {percent(facts.without_edges('amazon-c'))}",
        ],
        [
            "the same",
            "few neighbours, many labels",
            _command("--division node", "../tutorials/researcher.md"),
            f"Cora-ML, 1 change: {node}",
            f"no edges: {mlps}",
        ],
        [
            "the same",
            "few labels",
            _command("--teach gcn --division stacked", "../tutorials/few-labels.md"),
            f"Cora-ML, 20 labels per class, 1 change: {taught}",
            f"no edges, taught too: {taught_mlps}; untaught: {untaught}",
        ],
        [
            "edges, and the node's own features",
            "many neighbours",
            _command("--division gated", "../reference/divisions.md"),
            f"Amazon-C, 1 change: {percent(facts.field('amazon-c', '30 %', 'gated', 'added edges', 1))}",
            "no edges: 0, since own features decide",
        ],
        [
            "new edges only, old ones are out of reach",
            "dates of edges",
            _command('--division stacked --trusted "time<2018-01-01"', "stacked-votes.md"),
            f"Cora-ML, half of the edges trusted, 1 / 5 changes: {' / '.join(trusted)}",
            f"no edges: {percent(facts.without_edges('cora-ml'))}",
        ],
    ]


def _fraud() -> list[list[str]]:
    """Accounts are classified at a threshold."""
    found = [percent(facts.fraud(ETHEREUM, "stacked votes", size=size, times=False)) for size in (0, 1, 3)]
    trees, counts = (
        percent(facts.fraud(ETHEREUM, method, times=False)) for method in ("trees on aggregates", "undefended GNN")
    )
    return [
        [
            "payments to and from other accounts",
            "accounts without features of their own, values of payments",
            _command("--division stacked --model none --set defence.edge_values=true", "../fraud.md"),
            f"Ethereum without time stamps, recall at 0 / 1 / 3 new partners: {' / '.join(found)}",
            f"nothing proved: trees {trees}, GNN {counts}",
        ]
    ]


def _at(found: Sequence[Row], sizes: Sequence[int], asked: Sequence[int]) -> str:
    """Returns certified shares at some sizes, as "85.0 / 76.4"."""
    certified = mean(found, lambda row: row["certified"])
    return " / ".join(percent(certified[sizes.index(size)]) for size in asked)


def _training() -> list[list[str]]:
    """Training data are poisoned."""
    labels = sources.rows("label_votes")
    flips = _at(some(labels, dataset="cora-ml", protocol="30", method="LabelVotes few"), LABEL_SIZES, (1, 5))
    ridge = _at(
        some(labels, dataset="cora-ml", protocol="30", method="single ridge, same vectors, no cap"),
        LABEL_SIZES,
        (0,),
    )
    joint = some(sources.rows("labels_and_edges"), dataset="amazon-c", method="few, 2 votes")
    mixed = mean(joint, lambda row: row["certified"][JOINT_LABELS.index(1)][JOINT_EDGES.index(1)])
    blind = sources.rows("edge_blind")
    edges = _at(some(blind, dataset="amazon-c", method="edge-blind, weight 0.5"), BLIND_SIZES, (1, 3))
    features = _at(some(blind, dataset="amazon-c", method="no edges"), BLIND_SIZES, (0,))
    graphs = sources.rows("poisoned_graphs")
    apart = _at(some(graphs, dataset="proteins", method="50 models, one view"), GRAPH_SIZES, (1, 5))
    constant = _at(some(graphs, dataset="proteins", method="constant"), GRAPH_SIZES, (0,))
    return [
        [
            "training labels",
            "nodes with labels from others",
            _command("--division labels", "poisoned-labels.md"),
            f"Cora-ML, 1 / 5 flipped labels: {flips}",
            f"undefended ridge, no attack: {ridge}",
        ],
        [
            "training labels and edges",
            "the same",
            _command("--division labels --set defence.neighbour_votes=2", "poisoned-labels.md"),
            f"Amazon-C, 1 label and 1 edge: {percent(float(mixed))}",
            "",
        ],
        [
            "edges, before training too",
            "nodes with features",
            _command("--division stacked --set defence.edge_blind=true", "poisoned-graphs.md"),
            f"Amazon-C, 1 / 3 edges: {edges}",
            f"no edges: {features}",
        ],
        [
            "training graphs",
            "graph classification",
            _command("--division isolated", "poisoned-graphs.md"),
            f"PROTEINS, 1 / 5 poisoned graphs: {apart}",
            f"the most frequent class: {constant}",
        ],
    ]


def _other_tasks() -> list[list[str]]:
    """Pairs of nodes and functions of source code are classified."""
    pairs = sources.rows("pair_votes_links")
    both, alone = (
        some(pairs, dataset="amazon-c", negatives="uniform", method=method)
        for method in ("features + common neighbours, come or go", "features alone")
    )
    return [
        [
            "edges of either end",
            "pairs of nodes: links, single payments",
            _command("--division pairs", "pairs.md"),
            f"Amazon-C, links, 1 / 2 edges: {_at(both, PAIR_SIZES, (1, 2))}",
            f"own features: {_at(alone, PAIR_SIZES, (0,))}",
        ],
    ]


DEFENCES = {
    "node": "`NodeCentric(80)`",
    "edge": "`EdgeCentric(80)`",
    "gated": "`GatedNodeCentric(20)`",
    "per-neighbour": "`PerNeighbour()`",
    "stacked": "`StackedVotes()`",
    "labels": "`LabelVotes()`",
}


def costs() -> str:
    """Returns seconds of processor time and memory by defence and size of the graph."""
    found = sources.rows("costs")
    sizes = sorted({row["edges"] for row in found})
    lines = []
    for defence, name in DEFENCES.items():
        by_size = {row["edges"]: row for row in found if row["defence"] == defence}
        lines.append([name, *(_cost(by_size.get(size)) for size in sizes)])
    return table(["train + certify + verify, s; memory", *(f"{size:,} edges" for size in sizes)], lines)


def _cost(row: Row | None) -> str:
    if row is None:
        return "–"
    seconds = " + ".join(_seconds(row[step]) for step in ("train", "certify", "verify"))
    return f"{seconds}; {row['peak_gib']:.1f} GiB"


def _seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"
