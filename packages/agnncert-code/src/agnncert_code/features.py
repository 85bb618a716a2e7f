"""Features of a statement, computed from its own text alone.

``features`` and ``pieces`` hash tokens and are not fitted to data: one attacked statement changes no other statement's
features, and the same text has the same features on every machine (CRC-32, integer arithmetic up to the last step).
"""

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agnncert_code.tokens import KEYWORDS, tokens

FloatArray = npt.NDArray[np.float32]

RUNS = 3  # runs of one, two and three tokens
_ARITHMETIC = ("=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!")
_COMPARISONS = ("<", ">", "<=", ">=", "==", "!=", "&&", "||", "<<", ">>")
_CHANGES = ("++", "--", "+=", "-=")
_ACCESS = ("->", ".", "::", "[", "(")
_PUNCTUATION = ("?", ":", ",", ";", "{", "#")
OPERATORS = (*_ARITHMETIC, *_COMPARISONS, *_CHANGES, *_ACCESS, *_PUNCTUATION)
_CONTROL = ("if", "else", "for", "while", "do", "switch", "case", "default", "goto", "break", "continue", "return")
_TYPES = ("sizeof", "NULL", "const", "static", "unsigned", "int", "char", "void", "struct", "long")
_WORDS = (*_CONTROL, *_TYPES, "new", "delete", "throw", "catch")
_CLASSES = ("name", "constant name", "keyword", "number", "string", "character", "called", "other")
KIND_COLUMNS = (*OPERATORS, *_WORDS, *_CLASSES, "tokens")
_COLUMN = {word: k for k, word in enumerate(KIND_COLUMNS)}
_FIRST_CLASS = len(OPERATORS) + len(_WORDS)
_OTHER = _FIRST_CLASS + _CLASSES.index("other")

_MIX = np.uint64(0x9E3779B97F4A7C15)  # an odd number with well spread bits (the golden ratio)


def features(texts: Sequence[str], columns: int = 256) -> FloatArray:
    """Returns features of statements, one row each.

    Counts are compressed to ``log(1 + count)``. The hashed columns of a row are scaled to length 1, and so are the
    others, so that neither long statements nor frequent tokens dominate.

    Args:
        texts: Normalised texts (``normalised``), in which a space separates tokens.
        columns: Columns for hashed runs of one to three tokens.

    Returns:
        Array of shape ``[len(texts), columns + len(KIND_COLUMNS)]``.

    Example:
        >>> rows = features(["x = 1 ;", "free ( p ) ;", "x = 1 ;"])
        >>> rows.shape, bool((rows[0] == rows[2]).all()), bool((rows[0] == rows[1]).all())
        ((3, 327), True, False)
    """
    row_of_text = {text: k for k, text in enumerate(dict.fromkeys(texts))}
    rows = _rows(list(row_of_text), columns)
    return rows[[row_of_text[text] for text in texts]]


def _rows(texts: list[str], columns: int) -> FloatArray:
    """Returns one row for each text.

    The first ``columns`` columns count hashed runs of tokens, the others tokens of each kind.
    """
    width = columns + len(KIND_COLUMNS)
    if not texts:
        return np.zeros((0, width), dtype=np.float32)
    tokens_of_text = [split(text) for text in texts]
    row = np.repeat(np.arange(len(texts)), [len(words) for words in tokens_of_text])
    words = [word for of_text in tokens_of_text for word in of_text]
    codes = [_code(word) for word in words]
    hashes = np.array([code.hash for code in codes], dtype=np.uint64)
    own_columns = np.array([code.column for code in codes], dtype=np.int64)
    classes = np.array([code.number for code in codes], dtype=np.int64)
    classes[_is_called(words, row, classes)] = _CLASSES.index("called")
    start = row * width
    counted = [
        start + columns + own_columns,
        start + columns + _FIRST_CLASS + classes,
        start + columns + _COLUMN["tokens"],
    ]
    for length in range(1, RUNS + 1):
        counted.append(_runs(hashes, row, length, columns, width))
    counts = np.bincount(np.concatenate(counted), minlength=len(texts) * width).reshape(len(texts), width)
    return _scaled(counts, columns)


def _is_called(words: list[str], row: npt.NDArray[np.int64], classes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Returns which tokens are names before a parenthesis."""
    opens = np.array([word == "(" for word in words], dtype=bool)
    is_name = classes <= _CLASSES.index("constant name")
    is_called = np.zeros(len(words), dtype=bool)
    is_called[:-1] = opens[1:] & (row[1:] == row[:-1]) & is_name[:-1]
    return is_called


def _runs(
    hashes: npt.NDArray[np.uint64], row: npt.NDArray[np.int64], length: int, columns: int, width: int
) -> npt.NDArray[np.int64]:
    """Returns where in the feature matrix, read row by row, each run of consecutive tokens counts.

    A run counts in the column that its hash names. Runs that go beyond the end of a row are left out.

    Args:
        hashes: Hash of every token, the tokens of all rows one after the other.
        row: Row that each token belongs to.
        length: Number of tokens in a run.
        columns: Number of columns that runs are spread over.
        width: Number of columns of the matrix.
    """
    last = len(hashes) - length + 1
    if last <= 0:
        return np.zeros(0, dtype=np.int64)
    mixed = np.full(last, length, dtype=np.uint64)
    for k in range(length):
        mixed = (mixed ^ hashes[k : k + last]) * _MIX
        mixed ^= mixed >> np.uint64(29)
    is_within_row = row[:last] == row[length - 1 :]
    places = row[:last] * width + (mixed % np.uint64(columns)).astype(np.int64)
    return np.asarray(places[is_within_row])


def _scaled(counts: npt.NDArray[np.int64], columns: int) -> FloatArray:
    """Returns compressed counts, with hashed columns and the others each scaled to length 1."""
    values = np.log1p(np.arange(counts.max(initial=0) + 1, dtype=np.float64))[counts]
    for part in (slice(0, columns), slice(columns, None)):
        length = np.sqrt((values[:, part] ** 2).sum(axis=1, keepdims=True))
        values[:, part] /= np.maximum(length, 1e-12)
    return values.astype(np.float32)


def split(text: str) -> list[str]:
    """Returns the tokens of a normalised text. String literals may hold spaces, so these are joined again."""
    if '"' not in text and "' '" not in text:
        return text.split(" ")
    return tokens(text)


class _TokenCode(NamedTuple):
    """A token's hash, its own column among the kinds, and the number of its class."""

    hash: int
    column: int
    number: int


@lru_cache(maxsize=1 << 16)
def _code(token: str) -> _TokenCode:
    hashed = zlib.crc32(token.encode("utf-8", "replace"))
    return _TokenCode(hashed, _COLUMN.get(token, _OTHER), _CLASSES.index(_class_of(token)))


def _class_of(token: str) -> str:
    """Returns the name of a token's class."""
    if token in KEYWORDS:
        return "keyword"
    if token.endswith('"'):
        return "string"
    if token.endswith("'"):
        return "character"
    first = token[:1]
    if first.isalpha() or first == "_":
        return "constant name" if token.isupper() and len(token) > 1 else "name"
    is_number = first.isdigit() or (first == "." and token[1:2].isdigit())
    return "number" if is_number else "other"


PIECES = 2**14  # numbers that pieces are hashed to
LONGEST = 64  # pieces of a statement that are looked at

_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def pieces(texts: Sequence[str]) -> FloatArray:
    """Returns the distinct tokens of each statement and the parts of its names, as numbers.

    The numbers are to be looked up in a table of weights.

    A model with a weight for every piece tells far more words apart than fit into columns. Pass it as ``embed`` to
    ``to_data``, ``read_functions`` and ``load_big_vul``.

    Args:
        texts: Normalised texts, in which a space separates tokens.

    Returns:
        Array of shape ``[len(texts), LONGEST]`` with numbers from 1 to ``PIECES`` in the order of the text, then zeros.

    Example:
        >>> rows = pieces(["readLine ( in_file ) ;"])
        >>> int((rows > 0).sum())  # readLine, read, line, (, in_file, in, file, ), ;
        9
    """
    rows = np.zeros((len(texts), LONGEST), dtype=np.float32)
    numbers_of: dict[str, list[int]] = {}
    for k, text in enumerate(texts):
        if text not in numbers_of:
            distinct = dict.fromkeys(number for token in split(text) for number in _pieces_of(token))
            numbers_of[text] = list(distinct)[:LONGEST]
        numbers = numbers_of[text]
        rows[k, : len(numbers)] = numbers
    return rows


@lru_cache(maxsize=1 << 16)
def _pieces_of(token: str) -> tuple[int, ...]:
    """Returns a token's number, then those of the parts of a name: words in camelCase or between underscores."""
    words = [token] if token else []  # an empty text has one empty token
    if token[:1].isalpha() or token[:1] == "_":
        words += [f"part {part.lower()}" for part in _PART.findall(token)]
    return tuple(1 + zlib.crc32(word.encode("utf-8", "replace")) % PIECES for word in words)
