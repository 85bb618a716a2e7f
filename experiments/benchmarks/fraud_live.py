"""Bitcoin-OTC replayed: six years of ratings as events of a live graph, in a process and through the HTTP service.

python -m experiments.benchmarks.fraud_live replay --root .cache/data, then the same with service

Every rating is an edge from the rater to the rated, and a trader is a node from the first rating on. Each rater of a
trader has one vote: trust for a rating above zero, fraud for one below. Nothing is trained, so nothing is known in 2011
that was not known then, and all 316 labelled traders are looked at. At the end of each year the certificate becomes the
reference, and each quarter says how much of it is spent.

Writes experiments/results/fraud-live.json and docs/images/otc-live.svg.
"""

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.datasets.catalog import SOURCES
from agnncert.report.drawing import described
from agnncert_live import Event, LiveClient, LiveGraph, Webhook
from agnncert_live.guard import Limits
from agnncert_live.http import make_app
from agnncert_live.run import listen, run_until
from agnncert_live.service import Service

HERE = Path(__file__).parents[1]
OUT, PICTURE = HERE / "results" / "fraud-live.json", HERE.parent / "docs" / "images" / "otc-live.svg"
BATCH = 100
SIZES = (1, 3, 5)
COMPARED = 60  # labelled traders whose budgets are looked at


def ratings_of(root: str) -> pd.DataFrame:
    """Rater, rated, rating and time, in the order of time."""
    table = pd.read_csv(
        SOURCES["bitcoin-otc"].paths(Path(root))[0], header=None, names=["rater", "rated", "rating", "time"]
    )
    return table.sort_values("time", kind="stable").reset_index(drop=True)


def events_of(table: pd.DataFrame) -> Iterator[tuple[float, list[Event]]]:
    """The events of each rating, with its time: traders who are new, then the edge."""
    known = {int(table["rater"][0]), int(table["rated"][0])}
    for rater, rated, rating, when in table.iloc[1:].itertuples(index=False):
        events = [Event("add_node", int(name), value=[1.0]) for name in (rater, rated) if name not in known]
        known |= {rater, rated}
        yield when, [*events, Event("add_edge", int(rater), int(rated), value=[1.0, rating / 10], directed=True)]


def by_rating(data: Data) -> torch.nn.Module:
    """A model that is not trained: a rating above zero votes for trust, one below zero for fraud."""
    model = ac.build_model("rgcn", data, num_layers=1, out_channels=2)
    [layer] = model.convs
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        layer.relations[1].weight.copy_(torch.tensor([[1.0], [-1.0]]))
    return model.eval()


def first_graph(table: pd.DataFrame) -> Data:
    """Two traders and the first rating."""
    ids = torch.tensor([int(table["rater"][0]), int(table["rated"][0])])
    values = torch.tensor([[1.0, table["rating"][0] / 10]], dtype=torch.float32)
    return Data(x=torch.ones(2, 1), node_id=ids, edge_index=torch.tensor([[0], [1]]), edge_attr=values)


def quarterly(live: LiveGraph, truth: dict[int, int], reference: Any, when: float) -> dict[str, Any]:
    """What holds at the end of a quarter, for the labelled traders who are there."""
    certificate = live.certificate()
    here = [name for name in truth if name in certificate.place]
    place = [certificate.place[name] for name in here]
    right = certificate.label[place] == np.array([truth[name] for name in here])
    radius = certificate.structure_radius[place]
    row: dict[str, Any] = {
        "time": when, "events": live.number, "traders": len(certificate), "labelled traders": len(here),
        "right": float(right.mean()) if here else 0.0,
        "certified": {str(size): float((right & (radius >= size)).mean()) if here else 0.0 for size in SIZES},
        "any decision certified": {str(size): float((certificate.structure_radius >= size).mean()) for size in SIZES},
    }  # fmt: skip
    if reference is not None:
        known = [name for name in here if name in reference.place][:COMPARED]
        spent = [live.spent(name, since=reference) for name in known]
        budgets = np.array([reference.structure_radius[reference.place[one.target]] for one in spent])
        used = np.array([one.new_neighbours for one in spent])
        some = budgets > 0
        row["still proved"] = float(np.mean([one.within for one in spent]))
        row["label kept"] = float(np.mean([one.label[0] == one.label[1] for one in spent]))
        row["kept though not proved"] = int(sum(one.label[0] == one.label[1] and not one.within for one in spent))
        row["changed though proved"] = int(sum(one.label[0] != one.label[1] and one.within for one in spent))
        row["budget spent"] = float(np.minimum(used[some] / budgets[some], 1).mean()) if some.any() else 0.0
    return row


def replay(live: LiveGraph, table: pd.DataFrame, truth: dict[int, int]) -> dict[str, Any]:
    """All events, quarter by quarter; the time of bookkeeping is not counted."""
    rows, seconds, flips, batch = [], 0.0, 0, list[Event]()
    reference, batches, begin_of = None, 0, pd.to_datetime(table["time"][0], unit="s")
    quarter, year = (begin_of.year, begin_of.quarter), begin_of.year

    def send() -> None:
        nonlocal batch, seconds, flips, batches
        begin = time.perf_counter()
        done = live.apply(batch)
        seconds, flips, batches, batch = (
            seconds + time.perf_counter() - begin,
            flips + len(done.flipped),
            batches + 1,
            [],
        )

    for when, events in events_of(table):
        day = pd.to_datetime(when, unit="s")
        if (day.year, day.quarter) != quarter:
            if batch:
                send()
            rows.append(quarterly(live, truth, reference, when))
            if day.year != year:
                if reference is not None:
                    live.forget(reference)
                reference = live.reference()
            quarter, year = (day.year, day.quarter), day.year
        batch += events
        if len(batch) >= BATCH:
            send()
    send()
    rows.append(quarterly(live, truth, reference, float(table["time"].iloc[-1])))
    return {"quarters": rows, "events": live.number, "batches": batches, "seconds": seconds, "flips": flips}


class Receiver(BaseHTTPRequestHandler):
    """Counts alerts."""

    alerts = targets = 0

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Receiver.alerts += 1
        Receiver.targets += told["in_all"]
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


def through_service(live: LiveGraph, table: pd.DataFrame) -> dict[str, Any]:
    """The same events over HTTP on the loopback, with a journal on disk, and alerts pushed to a receiver."""
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    listening, ready, stop = listen("127.0.0.1", 0), threading.Event(), threading.Event()
    app = make_app(Service(live), None, Limits(rate=1e6))
    server = threading.Thread(target=run_until, args=(app, listening, ready.set, stop))
    server.start()
    ready.wait(30)
    client = LiveClient(f"http://127.0.0.1:{listening.getsockname()[1]}")
    refused, batch, number, waits = 0, list[Event](), 0, list[float]()
    with Webhook(live, f"http://127.0.0.1:{receiver.server_address[1]}/alerts", below=1) as hook:
        begin = time.perf_counter()
        for _, events in events_of(table):
            batch += events
            if len(batch) >= BATCH:
                sent = time.perf_counter()
                refused += client.apply(batch, id=f"otc-0:{number}")["refused_in_all"]
                waits.append(time.perf_counter() - sent)
                batch, number = [], number + 1
        refused += client.apply(batch, id=f"otc-0:{number}")["refused_in_all"]
        seconds = time.perf_counter() - begin
    stop.set()
    server.join(30)
    listening.close()
    receiver.shutdown()
    receiver.server_close()
    return {
        "events": live.number, "seconds": seconds, "refused": refused, "alerts received": Receiver.alerts,
        "targets in alerts": Receiver.targets, "alerts sent": hook.sent, "alerts given up": hook.failed,
        "median seconds of a batch": float(np.median(waits)), "largest batch seconds": float(np.max(waits)),
    }  # fmt: skip


def draw(found: dict[str, Any]) -> None:
    """The picture: what is certified over time, and how much of each year's certificate is spent."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "otc"
    import matplotlib.pyplot as plt

    rows = found["replay"]["quarters"]
    days = pd.to_datetime([row["time"] for row in rows], unit="s")
    figure, (first, second, third) = plt.subplots(3, 1, figsize=(7, 7), sharex=True)
    first.plot(days, [row["events"] for row in rows], color="0.3")
    first.set_ylabel("events so far")
    first.set_ylim(bottom=0)
    second.plot(days, [row["right"] for row in rows], color="0.3", label="right, no attack")
    for size, style in zip(SIZES, ("-", "--", ":"), strict=True):
        shares = [row["certified"][str(size)] for row in rows]
        second.plot(days, shares, style, color="tab:blue", label=f"certified against {size} rating{'s' * (size > 1)}")
    second.set_ylabel("share of labelled traders")
    second.set_ylim(0, 1)
    second.legend(fontsize=8, loc="lower right")
    later = [row for row in rows if "still proved" in row]
    dates = pd.to_datetime([row["time"] for row in later], unit="s")
    third.plot(dates, [row["label kept"] for row in later], color="0.3", label="label as at New Year")
    third.plot(
        dates, [row["still proved"] for row in later], color="tab:blue", label="still proved by that certificate"
    )
    third.plot(dates, [row["budget spent"] for row in later], color="tab:orange", label="mean share of budgets spent")
    third.set_ylabel("since last New Year")
    third.set_ylim(0, 1)
    third.legend(fontsize=8, loc="center right")
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})
    title = "Events, certified traders and spent budgets over six years of ratings"
    PICTURE.write_text(described(PICTURE.read_text(encoding="utf-8"), title, title), encoding="utf-8")
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("part", nargs="?", default="replay", choices=["replay", "service"])
    parser.add_argument("--draw", action="store_true", help="only draw the picture again")
    parser.add_argument("--first", type=int, default=None, help="only this many ratings, for a try")
    args = parser.parse_args()
    if args.draw:
        draw(json.loads(OUT.read_text()))
        return
    table, split = ratings_of(args.root), ac.load_dataset("bitcoin-otc", root=args.root, seed=0)
    known, division, voting_rule = split.y >= 0, ac.PerNeighbour(), ac.VotingRule()
    model = by_rating(first_graph(table))
    truth = {int(name): int(y) for name, y in zip(split.node_id[known], split.y[known], strict=True)}
    used = table.iloc[: args.first]
    found: dict[str, Any] = json.loads(OUT.read_text()) if OUT.exists() else {}
    found |= {"model": "the sign of a rating", "division": str(division), "rule": str(voting_rule), "ratings": len(used),
              "labelled traders": len(truth)}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "live.journal" if args.part == "service" else None
        with LiveGraph(model, first_graph(table), division, voting_rule=voting_rule, journal=journal) as live:
            found[args.part] = replay(live, used, truth) if args.part == "replay" else through_service(live, used)
            now, again = live.certificate(), ac.certify(model, live.data(), division, voting_rule=voting_rule)
    names = ("label", "structure_radius")
    found[args.part]["equal to certify"] = all(np.array_equal(getattr(now, n), getattr(again, n)) for n in names)
    print({name: value for name, value in found[args.part].items() if name != "quarters"})
    if args.first is None:
        OUT.write_text(json.dumps(found, indent=1) + "\n")
        if "replay" in found:
            draw(found)


if __name__ == "__main__":
    main()
