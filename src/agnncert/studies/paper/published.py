"""What the paper (AGNNCert, USENIX Security 2025) states in numbers, to be printed beside ours.

Its curves are figures without numbers; of them only the two sentences in ``CLAIMED`` can be compared.
"""

# Test accuracy on clean graphs (Table 3): undefended, edge-centric, node-centric.
ACCURACY: dict[str, dict[str, tuple[float, float, float]]] = {
    "gcn": {
        "cora-ml": (0.73, 0.70, 0.68), "citeseer": (0.66, 0.65, 0.67), "pubmed": (0.86, 0.81, 0.82),
        "amazon-c": (0.81, 0.76, 0.76), "aids": (0.99, 0.98, 0.96), "mutag": (0.71, 0.66, 0.65),
        "proteins": (0.75, 0.75, 0.75), "dd": (0.80, 0.79, 0.81),
    },
    "sage": {
        "cora-ml": (0.67, 0.67, 0.68), "citeseer": (0.64, 0.63, 0.64), "pubmed": (0.84, 0.84, 0.84),
        "amazon-c": (0.80, 0.77, 0.75), "aids": (0.97, 0.96, 0.97), "mutag": (0.70, 0.66, 0.67),
        "proteins": (0.80, 0.79, 0.77), "dd": (0.81, 0.80, 0.81),
    },
    "gat": {
        "cora-ml": (0.74, 0.68, 0.69), "citeseer": (0.66, 0.65, 0.66), "pubmed": (0.85, 0.84, 0.84),
        "amazon-c": (0.78, 0.74, 0.74), "aids": (0.96, 0.98, 0.98), "mutag": (0.71, 0.67, 0.66),
        "proteins": (0.82, 0.77, 0.77), "dd": (0.81, 0.77, 0.80),
    },
}  # fmt: skip

# Seconds on an RTX 4090: edge-centric, node-centric.
CERTIFICATION_SECONDS = {
    "cora-ml": (7.35, 7.45), "citeseer": (8.36, 8.40), "pubmed": (44.9, 42.7), "amazon-c": (35.3, 36.4),
    "aids": (24.3, 22.6), "mutag": (82.7, 86.2), "proteins": (23.1, 25.5), "dd": (33.1, 32.9),
}  # fmt: skip
EPOCH_SECONDS = {
    "cora-ml": (17.5, 18.6), "citeseer": (21.4, 22.5), "pubmed": (111.0, 102.0), "amazon-c": (102.0, 97.0),
    "aids": (101.0, 102.0), "mutag": (389.0, 401.0), "proteins": (96.0, 99.0), "dd": (163.0, 151.0),
}  # fmt: skip

BI_RS_CERTIFICATION_SECONDS = {"cora-ml": 1658.0, "pubmed": 60589.0}

# "About 70 % certified at size 200" for nodes, "60 % at 10" for graphs: task → (size, share).
CLAIMED = {"node": (200, 0.70), "graph": (10, 0.60)}

# Number of edges in its table of datasets.
EDGES = {"cora-ml": 8416, "citeseer": 4732, "pubmed": 44338}

# Cora-ML as the paper's released code reads it, and the nodes that this leaves without an edge.
RELEASED_CORA_EDGES, RELEASED_CORA_ISOLATED = 4303, 622

_COLUMN = {"none": 0, "edge": 1, "node": 2}


def accuracy(dataset: str, model: str, division: str) -> float | None:
    """Test accuracy that the paper reports; None if it reports none."""
    columns = ACCURACY.get(model, {}).get(dataset)
    return None if columns is None else columns[_COLUMN[division]]
