"""Features of a statement, computed from its own text alone.

``features`` and ``pieces`` hash tokens and are not fitted to data: one attacked statement changes no other statement's
features, and the same text has the same features on every machine (CRC-32, integer arithmetic up to the last step).

``StatementEncoder`` uses a pre-trained encoder on disk, such as GraphCodeBERT. It encodes each statement separately: in
a padded batch, the last bits of the features would depend on the other statements.
"""

import os
import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agnncert.errors import AgnncertError, missing
from agnncert_code.tokens import KEYWORDS, tokens

FloatArray = npt.NDArray[np.float32]

RUNS = 3  # runs of one, two and three tokens
OPERATORS = (
    "=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "<", ">", "<=", ">=", "==", "!=", "&&", "||", "<<", ">>",
    "++", "--", "+=", "-=", "->", ".", "::", "[", "(", "?", ":", ",", ";", "{", "#",
)  # fmt: skip
_WORDS = (
    "if", "else", "for", "while", "do", "switch", "case", "default", "goto", "break", "continue", "return", "sizeof",
    "NULL", "const", "static", "unsigned", "int", "char", "void", "struct", "long", "new", "delete", "throw", "catch",
)  # fmt: skip
_CLASSES = ("name", "constant name", "keyword", "number", "string", "character", "called", "other")
KIND_COLUMNS = (*OPERATORS, *_WORDS, *_CLASSES, "tokens")
_COLUMN = {word: k for k, word in enumerate(KIND_COLUMNS)}
_FIRST_CLASS = len(OPERATORS) + len(_WORDS)
_OTHER = _FIRST_CLASS + _CLASSES.index("other")

_MIX = np.uint64(0x9E3779B97F4A7C15)  # an odd number with well spread bits (the golden ratio)


def features(texts: Sequence[str], columns: int = 256) -> FloatArray:
    """Features of statements, one row each.

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
    distinct = {text: k for k, text in enumerate(dict.fromkeys(texts))}
    rows = _rows(list(distinct), columns)
    return rows[[distinct[text] for text in texts]]


def _rows(texts: list[str], columns: int) -> FloatArray:
    width = columns + len(KIND_COLUMNS)
    if not texts:
        return np.zeros((0, width), dtype=np.float32)
    pieces = [split(text) for text in texts]
    sizes = np.array([len(piece) for piece in pieces])
    flat = [token for piece in pieces for token in piece]
    of_token = {token: _code(token) for token in dict.fromkeys(flat)}
    codes = np.array([of_token[token][0] for token in flat], dtype=np.uint64)
    row = np.repeat(np.arange(len(texts)), sizes)
    places = [row * width + columns + np.array([of_token[token][1] for token in flat], dtype=np.int64)]
    kinds = np.array([of_token[token][2] for token in flat], dtype=np.int64)
    called = np.zeros(len(flat), dtype=bool)
    opens = np.array([token == "(" for token in flat], dtype=bool)
    called[:-1] = opens[1:] & (row[1:] == row[:-1]) & (kinds[:-1] <= 1)
    kinds = np.where(called, _CLASSES.index("called"), kinds)
    places.append(row * width + columns + _FIRST_CLASS + kinds)
    places.append(row * width + columns + _COLUMN["tokens"])
    for length in range(1, RUNS + 1):
        places.append(_runs(codes, row, length, columns, width))
    counts = np.bincount(np.concatenate(places), minlength=len(texts) * width).reshape(len(texts), width)
    return _scaled(counts, columns)


def _runs(
    codes: npt.NDArray[np.uint64], row: npt.NDArray[np.int64], length: int, columns: int, width: int
) -> npt.NDArray[np.int64]:
    """Column of each run of this many tokens within a row."""
    last = len(codes) - length + 1
    if last <= 0:
        return np.zeros(0, dtype=np.int64)
    mixed = np.full(last, length, dtype=np.uint64)
    for k in range(length):
        mixed = (mixed ^ codes[k : k + last]) * _MIX
        mixed ^= mixed >> np.uint64(29)
    whole = row[:last] == row[length - 1 :]
    places = row[:last] * width + (mixed % np.uint64(columns)).astype(np.int64)
    return np.asarray(places[whole])


def _scaled(counts: npt.NDArray[np.int64], columns: int) -> FloatArray:
    values = np.log1p(np.arange(counts.max(initial=0) + 1, dtype=np.float64))[counts]
    for part in (slice(0, columns), slice(columns, None)):
        length = np.sqrt((values[:, part] ** 2).sum(axis=1, keepdims=True))
        values[:, part] /= np.maximum(length, 1e-12)
    return values.astype(np.float32)


def split(text: str) -> list[str]:
    """The tokens of a normalised text; string literals may hold spaces, so these are joined again."""
    if '"' not in text and "' '" not in text:
        return text.split(" ")
    return tokens(text)


@lru_cache(maxsize=1 << 16)
def _code(token: str) -> tuple[int, int, int]:
    """A token's hash, its own column among the kinds, and its class."""
    return zlib.crc32(token.encode("utf-8", "replace")), _COLUMN.get(token, _OTHER), _class_of(token)


def _class_of(token: str) -> int:
    first = token[:1]
    if token in KEYWORDS:
        name = "keyword"
    elif token.endswith('"'):
        name = "string"
    elif token.endswith("'"):
        name = "character"
    elif first.isalpha() or first == "_":
        name = "constant name" if token.isupper() and len(token) > 1 else "name"
    elif first.isdigit() or (first == "." and len(token) > 1 and token[1].isdigit()):
        name = "number"
    else:
        name = "other"
    return _CLASSES.index(name)


PIECES = 2**14  # numbers that pieces are hashed to
LONGEST = 64  # pieces of a statement that are looked at

_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def pieces(texts: Sequence[str]) -> FloatArray:
    """The distinct tokens of each statement and the parts of its names, as numbers to look up in a table of weights.

    A model with a weight for every piece tells far more words apart than fit into columns. Pass it as ``embed`` to
    ``to_data``, ``read_functions`` and ``load_big_vul``.

    Args:
        texts: Normalised texts, in which a space separates tokens.

    Returns:
        Array of shape ``[len(texts), LONGEST]``: numbers from 1 to ``PIECES`` in the order of the text, then zeros.

    Example:
        >>> rows = pieces(["readLine ( in_file ) ;"])
        >>> int((rows > 0).sum())  # readLine, read, line, (, in_file, in, file, ), ;
        9
    """
    rows = np.zeros((len(texts), LONGEST), dtype=np.float32)
    known: dict[str, list[int]] = {}
    for k, text in enumerate(texts):
        found = known.get(text)
        if found is None:
            found = known[text] = list(dict.fromkeys(n for token in split(text) for n in _pieces_of(token)))[:LONGEST]
        rows[k, : len(found)] = found
    return rows


@lru_cache(maxsize=1 << 16)
def _pieces_of(token: str) -> tuple[int, ...]:
    """A token's number, followed by those of the parts of a name: words in camelCase or between underscores."""
    words = [token] if token else []  # an empty text has one empty token
    if token[:1].isalpha() or token[:1] == "_":
        words += [f"part {part.lower()}" for part in _PART.findall(token)]
    return tuple(1 + zlib.crc32(word.encode("utf-8", "replace")) % PIECES for word in words)


LONGEST_STATEMENT = 512  # tokens of the encoder; what is beyond is not seen


class StatementEncoder:
    """A model of the RoBERTa family in a folder, as ``transformers`` saves it; nothing is ever downloaded.

    Called with normalised texts, it returns one row each: the mean of the last layer over the text's tokens. Pass it as
    ``embed`` to ``to_data`` and ``read_functions``.

    Args:
        folder: Folder with ``config.json``, the tokenizer's files and ``model.safetensors``. Weights in pickles
            (``pytorch_model.bin``) are not opened, because reading a pickle can run any code inside it.

    Raises:
        AgnncertError: ``transformers`` is not installed, or the folder lacks something.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            import transformers
        except ImportError:
            raise missing("transformers", "a pre-trained encoder") from None
        folder = Path(folder)
        absent = [name for name in ("config.json", "model.safetensors") if not (folder / name).is_file()]
        if absent:
            raise AgnncertError(
                f"{folder} holds no encoder: {' and '.join(absent)} not found. Save the model there with "
                "model.save_pretrained and its tokenizer with tokenizer.save_pretrained."
            )
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self.model = transformers.AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True)
        except (OSError, ValueError) as error:
            raise AgnncertError(f"the encoder in {folder} cannot be read: {error}") from error
        self.model.eval().requires_grad_(False)
        positions = self.model.config.max_position_embeddings - 2  # RoBERTa counts positions from 2
        self.longest = min(LONGEST_STATEMENT, positions)

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        """Features of the texts, shape ``[len(texts), width of the encoder]``."""
        rows = {text: self._row(text) for text in dict.fromkeys(texts)}
        width = int(self.model.config.hidden_size)
        return np.array([rows[text] for text in texts], dtype=np.float32).reshape(len(texts), width)

    def _row(self, text: str) -> FloatArray:
        inputs = self.tokenizer(text, truncation=True, max_length=self.longest, return_tensors="pt")
        states = self.model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).last_hidden_state
        return np.asarray(states[0].mean(dim=0).numpy(), dtype=np.float32)
