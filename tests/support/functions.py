"""C and C++ functions for tests, and random edits of them whose effect on the statements is known."""

import random
from collections import Counter
from typing import Any

import torch

import agnncert as ac
import agnncert_code
from agnncert_code.syntax import parse

FUNCTIONS = [
    """static int copy(char *to, const char *from, int n)
{
    int i, last = 0;
    if (n < 0) {
        log_error("negative; {", n);
        return -1;
    }
    for (i = 0; i < n; i++) {
        to[i] = from[i];
        last = i;
    }
    last = last + 1;
    return last;
}""",
    """void Parser::step(const std::string& in, size_t at) {
    switch (in[at]) {
    case 'a':
        count_++;
    case 'b': {
        state_ = State::kOpen;
        break;
    }
    default:
        goto fail;
    }
    do { at--; if (at == 0) continue; use(at); } while (at > 2);
    try { flush(); } catch (const Error& e) { throw; }
    return;
fail:
    state_ = State::kBad;
}""",
    """int walk(struct node *p)
{
    int depth = 0;
    int width = 0;
    while (p) {
#ifdef DEBUG
        trace(p);
#else
        count = 1;
#endif
        if (p->left) { p = p->left; depth += 1; }
        else if (p->right) { p = p->right; depth += 1; }
        else { break; }
    }
    return depth;
}""",
]

INSERTED = (
    "zz = qq + 1;", "call_it(zz, 3);", "return;", "int zz = 3;", "goto out;", "if (zz) ;", "while (zz) { }", "break;",
    "zz.a->b[3] += f(x)->y;", "do ; while (zz);", 'const char *zz = "a;b{";', "zz * qq;", "for (;;) ;",
)  # fmt: skip


def edited(text: str, rng: random.Random) -> tuple[str, Counter[str], Counter[str]]:
    """The text with one random edit inside braces, and the statements that this inserts and deletes."""
    source, statements = text.encode(), parse(text).statements
    blocks = {k for k, s in enumerate(statements) if s.kind == "block" and source[s.span[0] : s.span[0] + 1] == b"{"}
    fit = [s for s in statements if s.text and s.parent in blocks and s.kind != "case"]
    if not fit:
        return text, Counter(), Counter()
    chosen, new = rng.choice(fit), rng.choice(INSERTED)
    start, end = chosen.span
    inside = Counter(s.text for s in statements if s.text and start <= s.span[0] and s.span[1] <= end)
    added = Counter(s.text for s in parse(f"void f() {{ {new} }}").statements if s.text and s.kind != "head")
    kind = rng.choice(("insert", "delete", "replace", "wrap"))
    if kind == "insert":
        return _joined(source[:start], new, source[start:]), added, Counter()
    if kind == "delete":
        return _joined(source[:start], "", source[end:]), Counter(), inside
    if kind == "replace":
        return _joined(source[:start], new, source[end:]), added - inside, inside - added
    wrapped = _joined(source[:start], "if (zz) {", source[start:end]).encode()
    return _joined(wrapped, "}", source[end:]), Counter(["if ( zz )"]), Counter()


def _joined(before: bytes, middle: str, after: bytes) -> str:
    return (before + middle.encode() + after).decode()


BAD = ("strcpy(a, b);", "gets(line);", "sprintf(out, fmt, x);")
GOOD = ("strlcpy(a, b, n);", "fgets(line, n, in);", "log(x);")
OTHER = ("i++;", "x = y + 1;", "if (x) y = 2;", "while (i < n) i++;", "int j = 0;", "free(p);")


def function(label: int, rng: random.Random) -> str:
    """A function whose calls tell its label, among statements that do not."""
    said = [rng.choice(BAD if label else GOOD) for _ in range(5)] + [rng.choice(OTHER) for _ in range(6)]
    rng.shuffle(said)
    return "int f(int x) { " + " ".join(said) + " return x; }"


def labelled(embed: Any = agnncert_code.pieces, count: int = 60) -> Any:
    """Functions of two classes as a set with three parts; each keeps its text as ``source``."""
    rng = random.Random(0)
    graphs = []
    for k in range(count):
        text = function(k % 2, rng)
        data = agnncert_code.graph(text).to_data(embed)
        data.y, data.source = torch.tensor([k % 2]), text
        graphs.append(data)
    part = torch.arange(count)
    return ac.GraphSet(graphs, train=part[:30], val=part[30:40], test=part[40:], num_classes=2)
