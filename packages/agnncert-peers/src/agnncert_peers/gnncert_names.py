"""GNNCert's divisions by name, for commands and settings. This module imports no torch."""

from agnncert.divisions.named import NamedDivision

_MODULE = "agnncert_peers.gnncert"

GNNCERT_E = NamedDivision("gnncert-e", "GNNCert-E", f"{_MODULE}:GNNCertE")
GNNCERT_N = NamedDivision("gnncert-n", "GNNCert-N", f"{_MODULE}:GNNCertN")
GNNCERT_EN = NamedDivision(
    "gnncert-en",
    "GNNCert-EN",
    f"{_MODULE}:GNNCertEN",
    counts=("edge_groups", "node_groups"),
    usual={"node": 30, "graph": 30},
)
