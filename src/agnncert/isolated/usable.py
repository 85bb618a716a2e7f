"""Which training graphs a model can be trained on, decided for each graph by itself.

A graph that cannot be used is left out of its part. Else one poisoned graph would stop the training of all parts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torch_geometric.data import Data

from agnncert.errors import DatasetError, GraphError
from agnncert.graphs.checks import checked_graph
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.labels import graph_classes

MOST_UNUSABLE = 0.25  # share of graphs; more are no exceptions, and the form that most graphs have is not certain


class Form(NamedTuple):
    """What graphs must have in common so that one model reads them.

    Attributes:
        features: Number of columns of ``x``.
        edge_weight: Shape of one entry of it; ``None`` without it.
        edge_attr: The same of ``edge_attr``.
    """

    features: int
    edge_weight: tuple[int, ...] | None
    edge_attr: tuple[int, ...] | None


def unusable_graphs(data: Sequence[Data], rows: Sequence[int], num_classes: int) -> dict[int, str]:
    """Returns why some training graphs cannot be used, by row.

    Whether one can depends on the graph, on the number of classes, and on the form that nearly all graphs of the data
    have. That form is the same before and after an attack on half of the graphs, and no certificate holds for more.

    Args:
        data: All graphs.
        rows: Rows of the training graphs.
        num_classes: How many classes there are, as somebody stated.

    Raises:
        GraphError: More than a quarter of the graphs are broken, or of another form than most.
        DatasetError: More than a quarter have a class that there is not.
    """
    forms: dict[int, Form] = {}
    faults: dict[int, str] = {}
    for row, graph in enumerate(data):
        try:
            forms[row] = _form_of(checked_graph(graph, f"graph {row}", f"graph {row}: ").graph)
        except Exception as error:  # whatever is wrong with it
            faults[row] = str(error)
    if forms:
        usual = Counter(forms.values()).most_common(1)[0][0]
        for row, form in forms.items():
            if form != usual:
                faults[row] = f"graph {row} has {_words(form)}, and most graphs have {_words(usual)}."
    _require_few(faults, len(data), GraphError)
    wrong = {row: _wrong_class(data[row], row, num_classes) for row in rows}
    wrong = {row: fault for row, fault in wrong.items() if fault}
    _require_few(wrong, len(rows), DatasetError)
    in_training = set(rows)
    return {row: text for row, text in sorted({**wrong, **faults}.items()) if row in in_training}


def _form_of(graph: CanonicalGraph) -> Form:
    weight, attr = (None if value is None else tuple(value.shape[1:]) for value in (graph.edge_weight, graph.edge_attr))
    return Form(graph.x.size(1), weight, attr)


def _words(form: Form) -> str:
    values = [name for name in ("edge_weight", "edge_attr") if getattr(form, name) is not None]
    shapes = "".join(f", {name} of shape {list(getattr(form, name))} per edge" for name in values)
    return f"{form.features} columns of features{shapes or ' and no values of edges'}"


def _wrong_class(graph: Data, row: int, num_classes: int) -> str:
    """Returns what is wrong with the class of a training graph; empty if nothing is."""
    try:
        label = int(graph_classes([graph])[0])
    except Exception as error:
        return f"row {row}: {error}"
    if 0 <= label < num_classes:
        return ""
    return f"row {row} has label {label}, and the data has classes 0 to {num_classes - 1}."


def _require_few(faults: Mapping[int, str], total: int, kind: type[GraphError] | type[DatasetError]) -> None:
    """Raises an error if so many graphs cannot be used that it is not about single ones."""
    if len(faults) <= MOST_UNUSABLE * total:
        return
    first = min(faults)
    raise kind(f"{faults[first]} {len(faults)} of {total} graphs cannot be used; single ones would be left out.")
