"""A small labelled corpus of C functions, a source tree full of trouble, and a scan that is written out by hand."""

import gzip
import json
import os
import random
from pathlib import Path

import torch
from torch_geometric.nn import global_mean_pool

from agnncert_code.findings import Scan, ScannedFunction, StatementVote

RISKY = ("strcpy(to, from);", "gets(to);", "sprintf(to, from);", "strcat(to, from);", "memcpy(to, from, n);")
PLAIN = ("n = n + 1;", "count(n);", "total += n;", "close(fd);", "flags = 0;", "note(n, fd);")


def function(k: int, risky: bool) -> str:
    """A function of eight statements, of which a risky one has several that copy without a limit."""
    rng = random.Random(2 * k + risky)
    body = rng.sample(PLAIN, 1) + rng.choices(RISKY, k=6) if risky else rng.choices(PLAIN, k=7)
    rng.shuffle(body)
    lines = "\n".join(f"    {line}" for line in body)
    return f"void work_{k}(void)\n{{\n{lines}\n}}\n"


def write_corpus(root: Path, count: int = 40) -> Path:
    """The labelled functions as the dataset big-vul has them; half are vulnerable."""
    rows = [{"id": k, "label": k % 2, "func": function(k, risky=bool(k % 2))} for k in range(count)]
    folder = root / "BigVul" / "raw"
    folder.mkdir(parents=True)
    content = "\n".join(json.dumps(row) for row in rows).encode()
    (folder / "bigvul_linevul_test_split.jsonl.gz").write_bytes(gzip.compress(content, mtime=0))
    return root


def write_tree(folder: Path) -> Path:
    """Sources in several folders, and files that cannot be read."""
    (folder / "lib" / "inner").mkdir(parents=True)
    (folder / "lib" / "one.c").write_text("".join(function(k, risky=k % 3 == 0) + "\n" for k in range(100, 106)))
    (folder / "lib" / "inner" / "two.HPP").write_text("\n\nstatic " + function(200, risky=True))
    (folder / "lib" / "cut.cc").write_text("int cut(int a) { if (a { return 1; } strcpy(b, c); }\n")
    (folder / "lib" / "latin.c").write_bytes(b"int f(void)\n{\n  return 'd\xe9j\xe0';\n}\n")
    (folder / "lib" / "notes.txt").write_text("int not_read(void) { return 0; }")
    (folder / "lib" / "folder.c").mkdir()
    os.symlink(folder, folder / "lib" / "loop")
    os.symlink("one.c", folder / "lib" / "same.c")
    os.symlink(os.devnull, folder / "lib" / "elsewhere.c")
    os.mkfifo(folder / "lib" / "pipe.c")
    return folder


class WordCount(torch.nn.Module):
    """Votes class 1 for statements whose features lean one way; takes no part in training."""

    def __init__(self, in_channels: int = 327, seed: int = 0):
        super().__init__()
        torch.manual_seed(seed)
        self.linear = torch.nn.Linear(in_channels, 2)

    def forward(self, x, edge_index, batch):
        return global_mean_pool(self.linear(x), batch)


HOSTILE = "</td></table><script>alert(1)</script><img src=x onerror=alert(2)>"


def hostile_scan() -> Scan:
    """A scan in which every text is someone else's, and meant to do harm."""
    votes = (
        StatementVote(3, f'puts ( "{HOSTILE}" ) ;', 1, True, 1),
        StatementVote(4, "a \u202e b", 0, True, 2),
        StatementVote(5, "c ;", 1, False, 1),
    )
    source = f'int f()\n// \u202e{HOSTILE}\nputs("{HOSTILE}");\na;\nc;\x1b[2J\n}}'
    one = ScannedFunction(
        file=f"src/{HOSTILE}.c", line=1, last_line=6, name=f"f{HOSTILE}", label=1, score=0.6, votes=(1, 3), edited=1.0,
        inserted=2.0, deleted=float("inf"), statements=3, partial=True, fingerprint="00ff", certificate=0, target=0,
        source=source, spoke=votes,
    )  # fmt: skip
    two = ScannedFunction(
        file="src/b.c", line=7, last_line=9, name="", label=0, score=0.1, votes=(4, 0), edited=-1.0, inserted=-1.0,
        deleted=-1.0, statements=4, partial=False, fingerprint="ff00", certificate=0, target=1,
    )  # fmt: skip
    return Scan(
        folder=f"src{HOSTILE}", functions=(one, two), skipped={f"x{HOSTILE}.c": "is not UTF-8", "src/b.c:70": "is large"},
        partial_files=(f"y{HOSTILE}.c",), certificates=(), class_names=("fine", f"bad{HOSTILE}"), suspicious=1, seconds=0.5,
    )  # fmt: skip
