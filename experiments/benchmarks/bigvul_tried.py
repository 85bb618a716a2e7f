"""What else was tried on Big-Vul, in folds of the training and validation functions: no test function is looked at.

    python -m experiments.benchmarks.bigvul_tried --data .cache/data

Logistic regression on bags of different pieces of a function's statements, with and without its length; all other
functions as further examples; a boosted forest; and statements read through a low-rank embedding that was made from the
other functions. Rows go to ``experiments/results/bigvul.jsonl``.
"""

import argparse
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags, hstack
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from agnncert_code import bigvul
from agnncert_code.features import split
from agnncert_code.tokens import KEYWORDS, is_name
from experiments.benchmarks.bigvul import PROTOCOLS, Row, read
from experiments.benchmarks.bigvul_attacks import write

SEEDS, FOLDS = 2, 5
Words = Callable[[list[str]], list[str]]
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def tokens(texts: list[str]) -> list[str]:
    """All tokens."""
    return [token for text in texts for token in split(text)]


def parts(texts: list[str]) -> list[str]:
    """Words in camelCase or between underscores."""
    return [f"part {part.lower()}" for token in tokens(texts) if is_name(token) for part in _PART.findall(token)]


def pairs(texts: list[str]) -> list[str]:
    """Tokens and runs of two."""
    found = [split(text) for text in texts]
    return tokens(texts) + [f"{a} {b}" for words in found for a, b in pairwise(words)]


def shapes(texts: list[str]) -> list[str]:
    """Runs of three tokens in which names are no names."""
    found = []
    for text in texts:
        words = ["N" if is_name(word) else "0" if word[0].isdigit() else word for word in split(text)]
        found += [" ".join(words[k : k + 3]) for k in range(max(1, len(words) - 2))]
    return found


def called(texts: list[str]) -> list[str]:
    """Names of functions that are called."""
    found = [split(text) for text in texts]
    return [a for words in found for a, b in pairwise(words) if b == "(" and a not in KEYWORDS]


def letters(texts: list[str]) -> list[str]:
    """Runs of four letters in names."""
    names = [f"^{token.lower()}$" for token in tokens(texts) if is_name(token)]
    return [name[k : k + 4] for name in names for k in range(len(name) - 3)]


BAGS: dict[str, Words] = {
    "tokens": tokens, "parts of names": parts, "tokens and parts": lambda texts: tokens(texts) + parts(texts),
    "tokens and pairs": pairs, "shapes of statements": shapes, "called functions": called, "letters of names": letters,
}  # fmt: skip


def bag(texts: list[list[str]], words: Words, rare: int = 3) -> Any:
    """Which words each function has, scaled by how rare they are, as rows of length 1."""
    found = CountVectorizer(analyzer=words, min_df=rare, binary=True, dtype=np.float64).fit_transform(texts)
    counts = np.bincount(found.indices, minlength=found.shape[1])
    return csr_matrix(normalize(found @ diags(np.log(len(texts) / counts))))


class Functions:
    """The functions of both protocols, or the whole corpus, and their folds."""

    def __init__(self, root: Path, whole: bool) -> None:
        corpus = bigvul.load_corpus(root)
        self.texts = [graph.texts for graph in corpus.graphs]
        self.label = corpus.label
        self.sizes = np.log1p(np.stack([corpus.length, [len(texts) for texts in self.texts]], axis=1))
        self.sizes = (self.sizes - self.sizes.mean(0)) / self.sizes.std(0)
        self.folds: dict[tuple[str, int], Any] = {}
        light: Any = SimpleNamespace(label=corpus.label, length=corpus.length, graphs=corpus.graphs)
        count = int(corpus.label.sum())
        for protocol in PROTOCOLS:
            matched = protocol == "big-vul-matched"
            for seed in range(SEEDS):
                others = bigvul.partners(light, seed) if matched else bigvul.drawn(light, seed)
                rows = np.concatenate([np.flatnonzero(corpus.label == 1), others])
                train, val, test = (part.numpy() for part in bigvul._split(count, seed, matched))
                pool = np.concatenate([train, val])
                fold = np.random.default_rng(7).permutation(2 * count)[pool % count if matched else pool] % FOLDS
                self.folds[protocol, seed] = (rows[pool], fold, rows[test])
        if not whole:
            self._keep(np.unique(np.concatenate([rows for rows, _, _ in self.folds.values()])))

    def _keep(self, rows: Any) -> None:
        """Forgets all other functions."""
        self.texts, self.label, self.sizes = [self.texts[k] for k in rows], self.label[rows], self.sizes[rows]
        none = np.zeros(0, dtype=np.int64)
        self.folds = {key: (np.searchsorted(rows, own), fold, none) for key, (own, fold, _) in self.folds.items()}

    def accuracy(self, features: Any, make: Callable[[], Any], protocol: str, seed: int, others: bool = False) -> float:
        """Mean over the folds; with all other functions as further examples, all of them together count as much."""
        rows, fold, test = self.folds[protocol, seed]
        right = []
        for number in range(FOLDS):
            held, fit, weight = rows[fold == number], rows[fold != number], None
            if others:
                fit = np.setdiff1d(np.arange(len(self.label)), np.concatenate([held, test]))
                weight = np.where(self.label[fit] == 1, 1.0, self.label[fit].mean() / (1 - self.label[fit].mean()))
            model = make().fit(features[fit], self.label[fit], sample_weight=weight)
            right.append((model.predict(features[held]) == self.label[held]).mean())
        return float(np.mean(right))


def variants(functions: Functions, whole: bool) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Name, features and classifier; with the whole corpus those that learn from all other functions too."""

    def line() -> Any:
        return LogisticRegression(solver="liblinear", max_iter=200)

    both = BAGS["tokens and parts"]
    if whole:
        yield "tokens and parts, all other functions too", lambda: bag(functions.texts, both), line
        yield "tokens and parts in 64 dimensions (SVD of all functions)", lambda: reduced(functions, both), line
        return
    for name, words in BAGS.items():
        yield name, lambda words=words: bag(functions.texts, words), line
    yield "length", lambda: functions.sizes, line
    yield "tokens, parts and length", lambda: with_sizes(functions, both), line
    yield "boosted trees on frequent tokens and length", lambda: frequent(functions), forest


def with_sizes(functions: Functions, words: Words) -> Any:
    """A bag and the length."""
    return csr_matrix(hstack([bag(functions.texts, words), 0.3 * functions.sizes]))


def reduced(functions: Functions, words: Words) -> Any:
    """The directions in which the bags of all functions differ most."""
    found = TruncatedSVD(64, n_iter=2, random_state=0).fit_transform(bag(functions.texts, words))
    return found / found.std(axis=0)


def frequent(functions: Functions) -> Any:
    """How often the 300 commonest tokens occur, and the length."""
    counts = CountVectorizer(analyzer=tokens, max_features=300, dtype=np.float64).fit_transform(functions.texts)
    return np.hstack([np.log1p(counts.toarray()), functions.sizes])


def forest() -> Any:
    """Many small trees."""
    return HistGradientBoostingClassifier(max_iter=100, learning_rate=0.05, max_leaf_nodes=8, l2_regularization=5)


def main() -> None:
    """Computes the rows that are missing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=".cache/data", type=Path)
    parser.add_argument("--out", default="experiments/results/bigvul.jsonl", type=Path)
    parser.add_argument("--whole", action="store_true", help="what learns from all other functions too; minutes")
    options = parser.parse_args()
    done = {(row["method"], row["protocol"], row["seed"]) for row in read(options.out) if row["stage"] == "tried"}
    functions = Functions(options.data, options.whole)
    for name, make_features, make in variants(functions, options.whole):
        wanted = [(protocol, seed) for protocol, seed in functions.folds if (name, protocol, seed) not in done]
        features = make_features() if wanted else None
        for protocol, seed in wanted:
            found: Row = {"stage": "tried", "protocol": protocol, "seed": seed, "method": name}
            write(
                options.out,
                {**found, "accuracy": functions.accuracy(features, make, protocol, seed, "all other" in name)},
            )


if __name__ == "__main__":
    main()
