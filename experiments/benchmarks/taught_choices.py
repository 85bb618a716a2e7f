"""Choices for taught students, by certified accuracy of validation nodes: two levels, epochs, students that vote, ...

python -m experiments.benchmarks.taught_choices cora-ml citeseer --root .cache/data --seeds 0 1

Rows go to experiments/benchmarks/results/taught-choices.jsonl as they come; a run that is started again goes on where it
stopped. Splits are those that had been looked at before (on Amazon-C seeds 60 to 65), and no test label is read: what is
better here has to be shown on fresh splits.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import agnncert as ac
from agnncert.stacked import training as stacked_training
from agnncert.training.settings import tuned_arguments
from experiments.benchmarks import field, taught
from experiments.benchmarks.stacked import SIZES
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).with_name("results") / "taught-choices.jsonl"
MADE_FOR = 3
VOTES = ac.StackedVotes(size=MADE_FOR)
ONE_TEACHER = f"{taught.BETTER}, one model"  # instead of three, which is enough to compare students
MANY_EPOCHS = {"cora-ml": 200, "citeseer": 200, "pubmed": 60, "amazon-c": 100}


class Students:
    """The taught students of one dataset and seed, with the teacher of the dataset's table."""

    def __init__(self, name: str, seed: int, root: str) -> None:
        self.bench = taught.Bench(name, seed, root)
        self.standard = name == "amazon-c"
        self.labels = ONE_TEACHER if self.standard else taught.TAUGHT
        if self.standard:
            model_args, _ = tuned_arguments(name, "node")
            teacher = ac.build_model("gcn", self.bench.data, **model_args, scale="standard")
            lesson = ac.teach(self.bench.data, teacher, members=1, class_shares="predicted", seed=seed)
            self.bench.add_version(self.labels, lesson)

    def votes(self, design: ac.StackedVotes = VOTES) -> Any:
        """Returns trained stacked votes."""
        return self.bench.stacked(self.labels, design, self.standard)

    def divided(self, epochs: int) -> Any:
        """Returns a GCN that is trained for AGNNCert-N."""
        name, seed = self.bench.name, self.bench.seed
        model_args, fit_args = tuned_arguments(name, "node")
        settings = {**fit_args, "epochs": epochs, "lr": 0.01, "evaluate_every": 5, "patience": None, "seed": seed}
        lesson = self.bench.version(self.labels)
        model = ac.build_model("gcn", lesson, seed=seed, **model_args)
        return ac.fit(model, lesson, ac.NodeCentric(300), **settings)

    def second_round(self) -> Any:
        """Returns votes that learn from what taught votes say, with the neighbours' votes, about the taught nodes.

        The labels are those of the first students in the graph that their teacher saw.
        """
        first = self.votes(ac.StackedVotes(size=1))
        lesson = self.bench.version(self.labels)
        hidden = lesson.test_mask | lesson.val_mask
        src, dst = lesson.edge_index
        seen = lesson.edge_index[:, ~hidden[src] & ~hidden[dst]]
        with torch.no_grad():
            said = first(lesson.x, seen).argmax(dim=1)
        again = lesson.clone()
        again.y = torch.where(lesson.taught_mask, said, lesson.y)
        labels = "taught by voting students"
        self.bench.add_version(labels, again)
        return self.bench.stacked(labels, VOTES, self.standard)


@contextmanager
def seen_share(share: float) -> Iterator[None]:
    """Trains votes with another share of training nodes that vote with the logits of all models."""
    before = stacked_training.SEEN
    stacked_training.SEEN = share
    try:
        yield
    finally:
        stacked_training.SEEN = before


def votes_with_more_seen(students: Students) -> Any:
    """Returns votes for whose training 0.8 of the training nodes vote with the logits of all models."""
    with seen_share(0.8):
        return students.votes()


AS_THEY_ARE, TWO_LEVELS, SECOND_ROUND = "votes as they are", "votes with two levels", "votes taught by voting students"
SMALL, LARGE = "votes as for fewer than 2,000 labels", "votes as for 2,000 labels and more"
SEEN, ALONE = "votes with SEEN = 0.8", "no votes"
FEW_EPOCHS, OF_MANY = "AGNNCert-N, few-label epochs", "AGNNCert-N, many-label epochs"
CHOICES: dict[str, Callable[[Students], Any]] = {
    ALONE: lambda students: without_edges(students.votes(ac.StackedVotes(size=0, epochs=1))),
    AS_THEY_ARE: Students.votes,
    SECOND_ROUND: Students.second_round,
    SEEN: votes_with_more_seen,
    SMALL: lambda students: students.votes(ac.StackedVotes(size=MADE_FOR, refine=False, weight_decay=5e-3)),
    LARGE: lambda students: students.votes(ac.StackedVotes(size=MADE_FOR, refine=True, weight_decay=1e-4)),
    TWO_LEVELS: lambda students: students.votes(ac.StackedVotes(size=MADE_FOR, levels=2)),
    FEW_EPOCHS: lambda students: students.divided(field.EPOCHS[students.bench.name]),
    OF_MANY: lambda students: students.divided(MANY_EPOCHS[students.bench.name]),
}


def without_edges(votes: Any) -> Any:
    """Returns the models without edges that votes begin with."""
    return votes.defence.without_edges(votes)


def make_row(students: Students, choice: str) -> dict[str, Any]:
    """Trains one student and certifies the validation nodes."""
    model = CHOICES[choice](students)
    defence: Any = getattr(model, "defence", ac.NodeCentric(300))
    view = students.bench.without_test
    certificate = ac.certify(model, view, defence, view.val_mask)
    correct = certificate.label == certificate.truth
    curve = [float((correct & certificate.holds_against(ac.Budget(add_edges=size))).mean()) for size in SIZES]
    uses_votes = getattr(model, "use_votes", None)
    return {
        "dataset": students.bench.name, "seed": students.bench.seed, "choice": choice, "labels": students.labels,
        "validation": curve, "uses edges": None if uses_votes is None else bool(uses_votes),
    }  # fmt: skip


def stored() -> list[dict[str, Any]]:
    """Returns all rows so far."""
    return list(read_rows(ROWS))


def main() -> None:
    """Makes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", choices=field.DATASETS)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--choices", nargs="+", default=list(CHOICES), choices=list(CHOICES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    for dataset in options.datasets:
        for seed in options.seeds:
            done = {row["choice"] for row in stored() if (row["dataset"], row["seed"]) == (dataset, seed)}
            wanted = [choice for choice in options.choices if choice not in done]
            students = Students(dataset, seed, options.root) if wanted else None
            for choice in wanted:
                assert students is not None
                row = make_row(students, choice)
                append_row(ROWS, row)
                print(dataset, seed, choice, [round(100 * value, 1) for value in row["validation"]], flush=True)


if __name__ == "__main__":
    main()
