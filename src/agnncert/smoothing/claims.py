"""What a certificate from samples proves, in words that follow from its evidence alone."""

from collections.abc import Mapping

from agnncert import __version__
from agnncert.claim import Claim
from agnncert.smoothing.deletions import DeletionNoise
from agnncert.smoothing.evidence import SampleEvidence
from agnncert.smoothing.flips import FlipNoise

_ASSUMED = (
    "Samples are independent draws of the stated noise; their number was fixed before any count was seen.",
    "The model's prediction on a noisy graph depends on that graph alone.",
)
_NEVER_PROVED = (
    "That a new vote gives this label: it is the most probable class under noise, not one vote's outcome.",
    "Anything about attacks on the training data.",
)
_UNSOUND = (
    "Anything at all: the legacy test is unsound, and one injected node can flip labels that it certifies."
)


def sample_claim(
    evidence: SampleEvidence,
    ids: str = "node_id",
    digests: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
    library_version: str = __version__,
) -> Claim:
    """The claim that belongs to some evidence; a verifier can compare it with the one in a file.

    Args:
        evidence: Counts, noise and error probability.
        ids: ``"node_id"`` or ``"row"``.
        digests: SHA-256 of the graph and the model.
        notes: Further remarks.
        library_version: Version to name.
    """
    noise, method = evidence.noise, evidence.method
    if isinstance(noise, DeletionNoise):
        covers, assumes, not_proved = _about_deletions(noise)
        method += f" ({noise.test})" if noise.test == "legacy-unsound" else ""
    else:
        assert isinstance(noise, FlipNoise)  # there are two kinds
        covers, assumes, not_proved = _about_flips(noise, evidence.task)
    return Claim(
        task=evidence.task,
        method=method,
        division="",
        num_groups=0,
        guarantee="probabilistic",
        unit=noise.unit,
        covers=tuple(covers),
        assumes=(*assumes, *_ASSUMED),
        not_proved=(*not_proved, *_NEVER_PROVED),
        ids=ids,
        alpha=evidence.alpha,
        alpha_scope=evidence.scope,
        digests=dict(digests or {}),
        notes=notes,
        library_version=library_version,
    )


def _about_deletions(noise: DeletionNoise) -> tuple[list[str], list[str], list[str]]:
    covers = ["Nodes injected with any features and a limited number of edges each, to old or new nodes."]
    assumes = ["A node without edges influences no other node (probed, not proved)."]
    not_proved = ["Edges added or deleted between existing nodes, deleted nodes, changed features."]
    return covers, assumes, [_UNSOUND, *not_proved] if noise.test == "legacy-unsound" else not_proved


def _about_flips(noise: FlipNoise, task: str) -> tuple[list[str], list[str], list[str]]:
    covers, assumes, not_proved = [], [], []
    if noise.where == "target row":
        covers.append("Edges added and deleted at the target.")
        not_proved.append(
            "Edges between other nodes: noise leaves them alone. So budgets of edges, which may lie "
            "anywhere, do not hold; only the radius speaks, about edges at the target."
        )
    elif noise.on_edges:
        where = ", anywhere" if task == "node" else ""
        covers.append(f"Edges added and deleted between existing nodes{where}.")
    else:
        not_proved.append("Changed edges.")
    if noise.on_features:
        covers.append("Entries of binary features flipped, at any node.")
        assumes.append("Features stay 0 or 1; the defence accepts no others.")
    else:
        not_proved.append("Changed features.")
    return covers, assumes, [*not_proved, "Injected and deleted nodes, changed weights of edges."]
