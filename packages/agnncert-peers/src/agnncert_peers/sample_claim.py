"""What a certificate from random samples covers, assumes and does not prove, in words that prover and verifier read."""

from collections.abc import Mapping
from typing import Any

import agnncert
from agnncert.certificates.claim import PREMISES, Claim
from agnncert.certificates.task import Task


def make_sample_claim(
    *,
    method: str,
    noise: Mapping[str, Any],
    task: Task,
    alpha: float,
    scope: str,
    ids: str = "node_id",
    digests: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
) -> Claim:
    """Returns the claim that belongs to predictions counted under random noise.

    Args:
        method: Name of the defence.
        noise: Kind and parameters of the noise, as files store them.
        task: ``"node"`` or ``"graph"``.
        alpha: Error probability.
        scope: What ``alpha`` is spent on.
        ids: As in :func:`make_claim`, like ``digests`` and ``notes``.
    """
    match noise["kind"]:
        case "deletions":
            covers, assumes, not_proved = _about_deletions()
        case "interception":
            covers, assumes, not_proved = _about_interception(noise)
        case _:
            covers, assumes, not_proved = _about_flips(noise, task)
    unsound = noise.get("test") == "legacy-unsound"
    if unsound:
        words = "Anything: the legacy test is unsound, and one injected node can change labels that it certifies."
        not_proved.insert(0, words)
    return Claim(
        task=task,
        method=f"{method} (legacy-unsound)" if unsound else method,
        division="",
        num_groups=0,
        guarantee="probabilistic",
        unit=noise_unit(noise),
        covers=tuple(covers),
        assumes=(
            *PREMISES,
            *assumes,
            "Samples are independent draws of the stated noise; their number was fixed before any count was seen.",
            "The model's prediction on a noisy graph depends on that graph alone.",
        ),
        not_proved=(
            *not_proved,
            "That new samples give this label: the label is the most probable class under noise.",
            "Robustness against attacks on the training data.",
        ),
        ids=ids,
        alpha=alpha,
        alpha_scope=scope,
        digests=dict(digests or {}),
        notes=notes,
        library_version=agnncert.__version__,
    )


def noise_unit(noise: Mapping[str, Any]) -> str:
    """Returns what one step of the radius counts; for flips: edges, or feature entries if no edge is noisy."""
    if noise["kind"] == "deletions":
        most = noise["edges_per_injected"]
        number = "any number of" if most == "inf" else f"up to {int(most)}"
        return f"node injected with {number} edges"
    if noise["kind"] == "interception":
        return "other node with changed features"
    if not (noise["p_add"] or noise["p_delete"]):
        return "feature entry flipped"
    if noise["where"] == "target row":
        return "edge added or deleted at the target"
    return "edge added or deleted"


def _about_deletions() -> tuple[list[str], list[str], list[str]]:
    covers = ["Nodes injected with any features and a limited number of edges each, to old or new nodes."]
    assumes = ["A node without edges influences no other node (probed, not proved)."]
    return covers, assumes, ["Edges added or deleted between existing nodes, deleted nodes, changed features."]


def _about_interception(noise: Mapping[str, Any]) -> tuple[list[str], list[str], list[str]]:
    covers = ["Any features of a limited number of existing nodes; the radius counts nodes other than the target."]
    assumes = [
        f"A prediction depends on the features of nodes that reach the target over at most {noise['hops']} edges, and "
        "on those alone (probed, not proved).",
        "The paths to each target are those of the graph (counted again if the graph is given).",
    ]
    own = ["Changed features of the target itself, which the model sees without noise."] if "skip" in noise else []
    return covers, assumes, [*own, "Edges added or deleted, changed weights of edges, injected and deleted nodes."]


def _about_flips(noise: Mapping[str, Any], task: Task) -> tuple[list[str], list[str], list[str]]:
    covers: list[str] = []
    assumes: list[str] = []
    not_proved: list[str] = []
    if noise["where"] == "target row":
        covers.append("Edges added and deleted at the target.")
        not_proved.append(
            "Edges between other nodes: noise leaves them alone. So budgets of edges, which may lie "
            "anywhere, do not hold; only the radius speaks, about edges at the target."
        )
    elif noise["p_add"] or noise["p_delete"]:
        where = ", anywhere" if task == "node" else ""
        covers.append(f"Edges added and deleted between existing nodes{where}.")
    else:
        not_proved.append("Changed edges.")
    if noise["p_add_feature"] or noise["p_delete_feature"]:
        covers.append("Entries of binary features flipped, at any node.")
        assumes.append("Features stay 0 or 1; the defence accepts no others.")
    else:
        not_proved.append("Changed features.")
    return covers, assumes, [*not_proved, "Injected and deleted nodes, changed weights of edges."]
