"""Figures that stand in sentences of the documentation, each with the file that it comes from.

A test looks for figures on all pages (percentages, shares, times, sizes, counts). What stands in a block made from
rows (``guides``), or in a code block that runs, is compared there. Every other figure has to be in one of these lists:

- ``MEASURED``: a file of results has it. The words on the page are compared with what the file gives.
- ``SETTINGS``: a line of code or configuration has it.
- ``TESTED``: a test of its own compares it.
- ``EXAMPLES``: it measures nothing, such as an example or the number of a section.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.documentation import facts, sources
from experiments.paper.rows import read_rows, share


@dataclass(frozen=True)
class Measured:
    """Words with ``{}`` for each figure, and what the file of results gives for them."""

    page: str
    words: str
    source: str
    values: Callable[[], list[str]]

    def on_page(self) -> str:
        """Returns the words as the page must have them."""
        return self.words.format(*self.values())


@dataclass(frozen=True)
class Setting:
    """Words of a page, and the line of a source file that says the same."""

    page: str
    words: str
    source: str
    key: str


@dataclass(frozen=True)
class Tested:
    """Words of a page, and the test that compares them."""

    page: str
    words: str
    source: str
    test: str


@dataclass(frozen=True)
class Example:
    """Words of a page that state no measurement, and why not."""

    page: str
    words: str
    why: str


def demo_settings() -> list[str]:
    """Returns how many settings of the demonstration were compared, and the best mean over seeds."""
    found = sources.rows("demo-settings")
    trained = dict.fromkeys((row["lr"], row["epochs"]) for row in found)
    tables = [
        np.mean([row["balanced"] for row in found if (row["lr"], row["epochs"]) == key], axis=0) for key in trained
    ]
    return [str(sum(len(table) for table in tables)), share(max(table.max() for table in tables))]


CODE, PEERS, LIVE = "packages/agnncert-code/src/agnncert_code", "packages/agnncert-peers/src/agnncert_peers", "packages/agnncert-live/src/agnncert_live"  # fmt: skip


def tables_of_events() -> list[str]:
    """What reading the largest table of events costs now, and cost before."""
    rows = [row for row in read_rows(sources.BENCHMARKS / "event-tables.jsonl") if row["format"] == "csv"]
    most = max(row["events"] for row in rows)
    now, before = (next(r for r in rows if (r["events"], r["version"]) == (most, name)) for name in ("now", "before"))
    costs = [(f"{row['processor_seconds']:.0f}", f"{row['peak_gib']:.1f}") for row in (now, before)]
    return [f"{most / 1e6:.1f}", *costs[0], *costs[1]]


MEASURED = [
    Measured("CHANGELOG.md", "{} million payments are read in {} s of processor time and {} GiB, where {} s and {} GiB were needed", "experiments/benchmarks/results/event-tables.jsonl", tables_of_events),
    Measured("README.md", "in attacks on {} targets within their certified budgets, no label changed", "experiments/benchmarks/results/attacks.json", lambda: [f"{facts.attacked('attacks')['within']:,}"] if facts.attacked("attacks")["refuted"] == 0 else ["?"]),
    Measured("docs/commands/demo.md", "of {} settings (learning rate, epochs, votes for “genuine” in advance) the one with the best certified balanced accuracy at size 3, {} on average", "experiments/results/demo-settings.jsonl", demo_settings),
    Measured("docs/commands/scan.md", "the detector is right for {0}% (balanced accuracy {0}%)", "experiments/results/bigvul.jsonl", lambda: [facts.percent(sources.some(sources.rows("bigvul"), stage="statements", protocol="big-vul", method="statements 0", seed=0)[0]["accuracy"])]),
]  # fmt: skip

SETTINGS = [
    Setting("README.md", "Python 3.11 to 3.13", "pyproject.toml", "Python :: 3.13"),
    Setting("CONTRIBUTING.md", "Python 3.11 to 3.13", ".github/workflows/tests.yml", '["3.11", "3.12", "3.13"]'),
    Setting("docs/commands/export.md", "With stacked votes, 65,536", "src/agnncert/stacked/record.py", "MOST_NEW = 2**16"),
    Setting("docs/commands/export.md", "above says \"at least 65,536\"", "src/agnncert/stacked/record.py", "MOST_NEW = 2**16"),
    Setting("CHANGELOG.md", "**At least 65,536**", "src/agnncert/stacked/record.py", "MOST_NEW = 2**16"),
    Setting("docs/proofs.md", "65,536 new neighbours are withstood", "src/agnncert/stacked/record.py", "MOST_NEW = 2**16"),
    Setting("docs/installation.md", "Python 3.11, 3.12 or 3.13", "pyproject.toml", "Python :: 3.13"),
    Setting("docs/commands/datasets.md", "86,622 addresses", "src/agnncert/datasets/catalog.py", '"ethereum-phishing", "node", 86622,'),
    Setting("docs/commands/datasets.md", "5,881 users", "src/agnncert/datasets/catalog.py", '"bitcoin-otc", "node", 5881,'),
    Setting("docs/commands/datasets.md", "30/10/60 % of the nodes", "src/agnncert/datasets/splits.py", "NODE_FRACTIONS = (0.3, 0.1, 0.6)"),
    Setting("docs/commands/datasets.md", "50/20/30 % of the graphs", "src/agnncert/datasets/splits.py", "GRAPH_FRACTIONS = (0.5, 0.2, 0.3)"),
    Setting("docs/guides/own-graph.md", "30/10/60 %", "src/agnncert/datasets/splits.py", "NODE_FRACTIONS = (0.3, 0.1, 0.6)"),
    Setting("docs/guides/own-model.md", "less than 3 % of a feature", "src/agnncert/auditing/altered_values.py", "STEP = 1.03"),
    Setting("docs/guides/own-model.md", "more than 100 times your nodes", "src/agnncert/auditing/probes.py", "MANY_TIMES = 100"),
    Setting("docs/commands/demo.md", "5,000 accounts", "src/agnncert/datasets/generated.py", "size: int = 5000"),
    Setting("docs/commands/demo.md", "3 % of them are fraud", "src/agnncert/datasets/generated.py", "< 0.03"),
    Setting("docs/commands/index.md", "50 MB", "src/agnncert/cli/data.py", "LARGEST_COPY = 50_000_000"),
    Setting("docs/commands/report.md", "4,000 target graphs", f"{PEERS}/possible.py", "MOST_GRAPHS = 4_000"),
    Setting("docs/commands/scan.md", "20 MB", f"{CODE}/source_files.py", "LARGEST_FILE = 20_000_000"),
    Setting("docs/commands/scan.md", "3,000 statements", f"{CODE}/reading.py", "LARGEST_FUNCTION = 3_000"),
    Setting("docs/commands/serve.md", "8 MB at most", f"{LIVE}/guard.py", "body: int = 8_000_000"),
    Setting("docs/commands/serve.md", "a stream 1 GB with lines of 1 MB", f"{LIVE}/guard.py", "stream: int = 1_000_000_000\n    line: int = 1_000_000"),
    Setting("docs/commands/serve.md", "100 requests per second", f"{LIVE}/guard.py", "rate: float = 100.0"),
    Setting("docs/commands/serve.md", "20 seconds", f"{LIVE}/guard.py", "patience: float = 20.0"),
    Setting("docs/commands/serve.md", "10,000 events", f"{LIVE}/service.py", "MOST_EVENTS = 10_000"),
    Setting("docs/commands/serve.md", "1,000 copies", f"{LIVE}/store.py", "MOST_COPIES = 1_000"),
    Setting("docs/commands/serve.md", "50,000 arcs", f"{LIVE}/store.py", "MOST_ARCS = 50_000"),
    Setting("docs/commands/settings.md", "less than 15 % of an equal share", "src/agnncert/proving/measures.py", "RARE = 0.15"),
    Setting("docs/commands/show.md", "50,000 targets", "src/agnncert/cli/certify_step.py", "MOST_EXCLUDED = 50_000"),
    Setting("docs/commands/verify.md", "1 MB of header", "src/agnncert/certificates/file.py", "LONGEST_HEADER = 2**20"),
    Setting("docs/commands/verify.md", "32,767 classes", "src/agnncert/certificates/votes.py", '"num_classes": np.iinfo(np.int16).max'),
    Setting("docs/commands/verify.md", "10,000,000 samples", f"{PEERS}/recount_samples.py", "MOST_SAMPLES = 10**7"),
    Setting("docs/commands/verify.md", "12,000,000 steps", f"{PEERS}/recount_samples.py", "MOST_STEPS = 12_000_000"),
    Setting("docs/guides/add-your-defence.md", "60 kB", "experiments/benchmarks/field_cards.py", "LARGEST = 60_000"),
    Setting("docs/guides/controls.md", "The 95 % interval", "src/agnncert/controls/operating_point.py", "NORMAL_95 = 1.959964"),
    Setting("docs/guides/live.md", "200,000 ids", f"{LIVE}/journal.py", "REMEMBERED = 200_000"),
    Setting("docs/guides/live.md", "20,000 events", f"{LIVE}/graph.py", "SNAPSHOT_EVERY = 20_000"),
    Setting("docs/guides/own-model.md", "about 1,024 nodes", "src/agnncert/auditing/user_graphs.py", "LEAST_ROWS = 1024"),
    Setting("docs/guides/own-model.md", "200 nodes", "src/agnncert/auditing/edge_features.py", "SAMPLED = 200"),
    Setting("docs/guides/pairs.md", "the last 40 % of all ratings, in windows of 1 %", "experiments/benchmarks/pair_votes.py", "each=0.01"),
    Setting("docs/guides/poisoned-labels.md", "30 % of the labels and 1,000 tested nodes", "experiments/benchmarks/label_votes.py", "TARGETS = 1000"),
    Setting("docs/guides/rare-classes.md", "less than 15 % of an equal share", "src/agnncert/proving/measures.py", "RARE = 0.15"),
    Setting("docs/guides/stacked-votes.md", "65,536 to one vote", "src/agnncert/stacked/record.py", "STEPS = 2**16"),
    Setting("docs/proofs.md", "65,536 groups", "src/agnncert/divided/theorems/custom.py", "LARGEST_TABLE = 2**16"),
    Setting("docs/rounding.md", "GELU (1.13), SiLU (1.1)", "src/agnncert/engine/error_bounds.py", "GELU = Activation(slope=1.13"),
    Setting("docs/rounding.md", "up to 1,000 terms", "src/agnncert/engine/long_sums.py", "MOST_MESSAGES = 1_000"),
    Setting("docs/rounding.md", "more than 1,000 edges", "src/agnncert/engine/long_sums.py", "MOST_MESSAGES = 1_000"),
    Setting("docs/rounding.md", "more than 1,000 nodes", "src/agnncert/engine/long_sums.py", "MOST_MESSAGES = 1_000"),
    Setting("docs/rounding.md", "more than 4,096 features", "src/agnncert/engine/long_sums.py", "MOST_FEATURES = 4_096"),
]  # fmt: skip

TESTED = [
    Tested("docs/commands/demo.md", "At least {} % of {} nodes", "tests/e2e/cli/test_commands.py", "test_the_demonstration_proves_more_about_fraud_than_a_model_without_edges_knows"),
    Tested("docs/commands/demo.md", "at {} % false positives the certified model detects {} % of fraud", "tests/e2e/cli/test_commands.py", "test_the_demonstration_proves_more_about_fraud_than_a_model_without_edges_knows"),
    Tested("docs/commands/demo.md", "(MLP, no graph) {} %, whatever", "tests/e2e/cli/test_commands.py", "test_the_demonstration_proves_more_about_fraud_than_a_model_without_edges_knows"),
    Tested("docs/guides/thresholds.md", "| {} % | {} kept accounts |", "tests/unit/proving/test_guaranteed_rate.py", "test_so_many_have_to_be_kept_at_least"),
    Tested("docs/guides/thresholds.md", "| {} % | 59 |", "tests/unit/proving/test_guaranteed_rate.py", "test_so_many_have_to_be_kept_at_least"),
    Tested("docs/guides/thresholds.md", "| {} % | 299 |", "tests/unit/proving/test_guaranteed_rate.py", "test_so_many_have_to_be_kept_at_least"),
    Tested("docs/trust.md", "about {} lines, of which {} are code", "tests/e2e/docs/test_trust.py", "test_the_stated_lengths_are_about_right"),
    Tested("docs/trust.md", "some {} lines remain", "tests/e2e/docs/test_trust.py", "test_the_stated_lengths_are_about_right"),
    Tested("docs/trust.md", "A fuzz altered {} certificates", "tests/e2e/docs/test_trust.py", "test_the_figures_of_the_fuzz_are_those_of_its_table"),
    Tested("docs/trust.md", "{} attacks, {} of them with another training, left {} labels that had to stay", "tests/e2e/docs/test_trust.py", "test_the_figures_of_the_attacks_on_the_whole_way_are_those_of_their_rows"),
    Tested("docs/trust.md", "after {} of them, a label changed", "tests/e2e/docs/test_trust.py", "test_the_figures_of_the_attacks_on_the_whole_way_are_those_of_their_rows"),
    Tested("docs/trust.md", "found on {} of {} ways", "tests/e2e/docs/test_trust.py", "test_the_figures_of_the_attacks_on_the_whole_way_are_those_of_their_rows"),
    Tested("docs/trust.md", "of {} kinds: this tries", "tests/e2e/docs/test_trust.py", "test_the_figures_of_the_attacks_on_the_whole_way_are_those_of_their_rows"),
    Tested("docs/trust.md", "after {} attacks at most", "tests/e2e/docs/test_trust.py", "test_the_figures_of_the_attacks_on_the_whole_way_are_those_of_their_rows"),
    Tested("docs/trust.md", "{} were refused, {} said", "tests/e2e/docs/test_trust.py", "test_the_figures_of_the_fuzz_are_those_of_its_table"),
]  # fmt: skip

EXAMPLES = [
    Example("docs/commands/certify.md", "about 200 MB", "what the command beside it asks for"),
    Example("docs/commands/journal.md", "{} events, {} batches since its snapshot, {} ids, {} references, {} bytes", "a journal of somebody"),
    Example("docs/fraud.md", "a false positive rate of 10 %", "an operating point that the reader chooses"),
    Example("docs/fraud.md", "14 days", "the command beside it"),
    Example("docs/guides/own-division.md", "at most 2s votes", "a formula: s pairs"),
    Example("docs/guides/own-model.md", "17 nodes more than yours", "a model that nobody has"),
    Example("docs/guides/rare-classes.md", "If 3 % of the accounts are fraud, the answer \"fine\" is right for 97 % of them", "supposed"),
    Example("docs/guides/rare-classes.md", "The accounts are generated: 4 % are fraud", "the code block below generates them"),
    Example("docs/guides/append-only.md", "at 10 % of the honest ones", "an operating point that the benchmark requests"),
    Example("docs/guides/append-only.md", "More was hoped for: 75 % of fraud", "a goal that was set before anything was measured"),
    Example("docs/guides/append-only.md", "at most 10 % of honest accounts are accused with 95 % confidence", "an operating point that the benchmark requests"),
    Example("docs/guides/thresholds.md", "\"At most 10 % of honest customers are bothered\"", "an operating point that the reader chooses"),
    Example("docs/guides/thresholds.md", "a probability of 5 % or less", "the confidence that the page requests"),
    Example("docs/guides/thresholds.md", "| requested rate | 95 % confidence", "the confidence that the page requests"),
    Example("docs/guides/thresholds.md", "with 95 % probability, so you may", "the default of the monitor"),
    Example("docs/guides/thresholds.md", "prove with 95 % confidence", "the default of the monitor"),
    Example("docs/guides/stacked-votes.md", "false_positive_rate=0.01", "an operating point that the reader chooses"),
    Example("docs/proofs.md", "one votes on G′: 2s for", "a formula"),
    Example("docs/proofs.md", "the price of 65 nodes", "the next number after the 64 of the sentence"),
    Example("docs/rounding.md", "*Accuracy and Stability*, 3.1", "a section of a book"),
    *(Example("docs/standards.md", section, "a section of ISO/IEC 24029-2") for section in ("5.2 Domain", "5.3 Stability", "5.4 Sensitivity, 5.5 Relevance", "5.6 Reachability")),
    Example("docs/tutorials/few-labels.md", "1,200 accounts, 30 %", "the code block below generates them"),
    Example("docs/tutorials/payments.md", "at most 5 % of the honest ones", "the command above asks for it"),
]  # fmt: skip
