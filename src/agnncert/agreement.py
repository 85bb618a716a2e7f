"""Whether the targets, the model, its numbers and classes that a certificate file names are those at hand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.file import Contents
from agnncert.engine.adapter import ModelAdapter
from agnncert.findings import Findings
from agnncert.graphs.targets import AnyTargets, CanonicalData, Targets
from agnncert.models.digest import model_digest
from agnncert.proving.certificate import as_ids

if TYPE_CHECKING:
    from agnncert.defence import Defence, RecomputeOptions

_COLUMNS = {"target": "id", "row": "place in edge_label_index", "truth": "true class", "degree": "degree"}


@dataclass(frozen=True)
class Comparison:
    """A certificate file beside the graph, or graphs, that it speaks about, and what came of comparing them so far.

    Attributes:
        contents: What the file says.
        data: The graph or graphs.
        options: What the caller wants computed.
        findings: What was found so far.
    """

    contents: Contents
    data: CanonicalData
    options: "RecomputeOptions"
    findings: Findings = field(default_factory=Findings)

    def targets(self, keep_self_loops: bool = False) -> Targets:
        """Returns the targets of the file in this data."""
        return self.data.targets(self.contents.arrays["row"], keep_self_loops)

    def compare_targets(self, chosen: AnyTargets, digests: tuple[str, ...] = ("graph", "model")) -> None:
        """Compares graph and targets; arguments as in :func:`wrong_targets`."""
        self.findings.wrong += wrong_targets(self.contents, chosen, digests)
        if not self.findings.wrong:
            self.findings.checked.append("the graph, and the targets with their ids")

    def compare_notes(self, defence: "Defence") -> None:
        """Compares the notes of the claim with the name of the defence."""
        self.findings.wrong += wrong_notes(self.contents, defence)
        self.findings.notes_compared = True

    def is_of_model(self, model: Any) -> bool:
        """Returns whether nothing is wrong so far, and the model is the certified one; notes it if it is another."""
        if not self.findings.wrong:
            self.findings.wrong += other_model(self.contents, model)
        return not self.findings.wrong


def wrong_targets(
    contents: Contents, chosen: AnyTargets, digests: tuple[str, ...] = ("graph", "model")
) -> Iterator[str]:
    """Yields what is not as in the graph, target by target.

    Args:
        contents: What the file says.
        chosen: The same targets in the graph at hand.
        digests: Names of the digests that such a file has to state.
    """
    yield from _wrong_graph(contents, chosen, digests)
    known = {"target": as_ids(chosen.ids), "row": chosen.rows, "truth": chosen.truth, "degree": chosen.degree}
    yield from wrong_columns(contents, known)


def _wrong_graph(contents: Contents, chosen: AnyTargets, digests: tuple[str, ...]) -> Iterator[str]:
    """Yields what is wrong if the graph is not the one that was certified; arguments as in :func:`wrong_targets`."""
    claim = contents.claim
    if claim.ids != chosen.id_kind:
        yield f'the claim says that nodes are known by "{claim.ids}", the data says by "{chosen.id_kind}"'
    missing = [name for name in digests if name not in claim.digests]
    if missing:
        yield f"the file does not say which {missing[0]} was certified: it has no digest of it"
    elif claim.digests["graph"] != chosen.digests["graph"]:
        yield "the graph is not the one that was certified (its digest differs)"
    encoding = chosen.digests.get("encoding")
    if encoding is not None and claim.digests.get("encoding", encoding) != encoding:
        yield "the features were made from the table by another encoding (its digest differs)"


def wrong_columns(contents: Contents, known: Mapping[str, npt.NDArray[Any] | None]) -> Iterator[str]:
    """Yields what a file states of each target that the data contradicts, or does not have.

    Args:
        contents: What the file says.
        known: What the data says, by names of the file's arrays, shape ``[n]`` each; None for what it does not have.
    """
    for name, values in known.items():
        if name not in contents.arrays:
            continue
        if values is None:
            yield f"the file states the {_COLUMNS[name]} of each target, which the data does not have"
            continue
        stated = contents.arrays[name].tolist()
        wrong = sum(a != b for a, b in zip(stated, values.tolist(), strict=True))
        if wrong:
            yield f"the {_COLUMNS[name]} of {wrong:,} targets is not that of the graph"


def other_model(contents: Contents, model: Any) -> Iterator[str]:
    """Yields what is wrong if the model is not the one that was certified."""
    if contents.claim.digests["model"] != model_digest(model):
        yield (
            "the model is not the one that was certified (its digest differs: other weights or settings, or classes "
            "under other names of their modules)"
        )


def wrong_notes(contents: Contents, defence: "Defence") -> Iterator[str]:
    """Yields what is wrong if the notes of a claim do not name the defence, and nothing else."""
    if contents.claim.notes != (str(defence),):
        yield f"the claim does not name the defence as it is, {defence}"


def wrong_numbers(stored: object, computed: Mapping[str, Any], slack: Mapping[str, int]) -> Iterator[str]:
    """Yields what a file states that the model does not compute.

    Args:
        stored: The evidence of a file: it has the same arrays and settings as attributes.
        computed: Arrays and settings by name, computed again.
        slack: By how much another machine may compute the numbers of an array differently, by name. Zero by default.
    """
    for name, value in computed.items():
        stated = getattr(stored, name)
        if not isinstance(value, np.ndarray):
            if stated != value:
                yield f"{name} is {stated!r:.60}, the model says {value!r:.60}"
        elif stated.shape != value.shape:
            yield f"{name} does not have the shape that follows from the graph"
        elif np.abs(stated.astype(np.int64) - value).max(initial=0) > slack.get(name, 0):
            yield f"{name} is not what the model computes on this graph"


def other_classes(stated: int, bound_model: ModelAdapter) -> Iterator[str]:
    """Yields what is wrong if the evidence has another number of classes than the model."""
    if stated != bound_model.num_classes:
        yield f"the model has {bound_model.num_classes} classes, the evidence {stated}"
