"""``certify``: audit the model, divide the graph, cast the ballots, and state what they prove."""

import hashlib
from typing import Any, Literal

import numpy as np

from agnncert.divisions import Division, EdgeCentric, rule_of
from agnncert.errors import ModelContractError, SettingsError, did_you_mean
from agnncert.graphs.graph import canonical, canonical_set, graph_digest, infer_task
from agnncert.graphs.targets import target_degree, target_ids, target_rows, target_truth
from agnncert.proof.certificate import Certificate
from agnncert.proof.claim import make_claim
from agnncert.proof.evidence import BallotEvidence
from agnncert.voting.auditing import AuditReport, audit
from agnncert.voting.call import bind, model_digest
from agnncert.voting.cast import EngineName, cast

Attacks = Literal["any", "edges"]


def certify(
    model: Any,
    data: Any,
    division: Division,
    targets: Any = None,
    engine: EngineName = "fast",
    *,
    attacks: Attacks = "any",
    tolerance: float | None = None,
    memory_limit: int | None = None,
) -> Certificate:
    """Proves how much of a graph an attacker may change without changing the model's voted labels.

    Args:
        model: A trained module, in eval mode. Node task: ``model(x, edge_index) -> [num_nodes, classes]``;
            graph task: ``model(x, edge_index, batch) -> [num_graphs, classes]``. ``edge_weight`` and
            ``edge_attr`` are passed on when the data has them and ``forward`` takes them.
        data: A ``Data`` (node classification) or a list of ``Data`` (graph classification), ideally with
            ``node_id``.
        division: ``EdgeCentric``, ``NodeCentric``, or one of your own.
        targets: Mask or row numbers of the nodes (graphs) to certify; all when not given.
        engine: "fast" or "naive"; the ballots are the same.
        attacks: "edges" certifies a model that mixes all nodes in the edge-centric division, against changes
            of edges alone.
        tolerance: How far two computations of one logit may lie apart, relative to the largest; measured when
            not given.
        memory_limit: Bytes that one chunk of work may take, about.

    Returns:
        The certificate, with labels, radii and everything needed to answer other budgets.

    Raises:
        ModelContractError: The model breaks an assumption of the proof.
        GraphError: The graph cannot be certified as it is.
    """
    task = infer_task(data)
    total = len(data) if task == "graph" else data.num_nodes
    rows = target_rows(targets, total)
    loops = bool(getattr(division, "self_loops", False))
    graph = canonical_set([data[int(k)] for k in rows], loops) if task == "graph" else canonical(data, loops)
    report = audit(model, task, division, data)
    edges_only = _agreed(report, division, attacks, engine)
    call = bind(model, graph, task)  # after the audit, which names the layer that makes a call fail
    tolerance = report.tolerance if tolerance is None else tolerance
    positions = np.arange(len(rows)) if task == "graph" else rows
    voted = _PlainBallots(division) if edges_only else division
    votes, (cover_ptr, cover) = cast(
        call, graph, voted, positions, "naive" if edges_only else engine, tolerance, memory_limit
    )
    ids = "node_id" if graph.stable_ids else "row"
    rule, parameters = (f"custom/{task}", voted.unit_costs) if edges_only else rule_of(division, task)  # type: ignore[attr-defined]
    evidence = BallotEvidence(votes, rule, cover_ptr, cover.astype(np.int32), ids, parameters)
    claim = make_claim(
        rule=rule,
        task=task,
        division=str(division),
        num_groups=division.num_groups,
        ids=ids,
        tolerance=tolerance,
        digests={"graph": graph_digest(graph), "model": model_digest(model), "division": _sha256(str(division))},
        parameters=parameters,
    )
    return Certificate(
        claim=claim,
        evidence=evidence,
        target=target_ids(data, rows, task),
        row=rows,
        truth=target_truth(data, rows, task),
        degree=target_degree(graph, rows, task),
    )


class _PlainBallots:
    """The edge-centric division for a model that mixes nodes: one edge moves one ballot, and nothing more is
    known.
    """

    def __init__(self, division: Division) -> None:
        self.num_groups = division.num_groups
        self.groups, self.subgraph, self.votes_moved = (division.groups, division.subgraph, division.votes_moved)
        self.unit_costs = {"add_edges": 1, "delete_edges": 1, "change_edges": 1}


def _agreed(report: AuditReport, division: Division, attacks: Attacks, engine: EngineName) -> bool:
    """Whether to fall back to edges alone; refuses what cannot be certified."""
    if attacks not in ("any", "edges"):
        raise SettingsError(f'attacks="{attacks}": {did_you_mean(str(attacks), ["any", "edges"])}')
    if report.needs_naive and engine != "naive":
        raise ModelContractError(str(report))
    if report.fit_for == ("edges", "nodes", "features"):
        return False
    if attacks == "edges" and "edges" in report.fit_for and isinstance(division, EdgeCentric):
        return True
    raise ModelContractError(str(report))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
