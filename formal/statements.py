"""Writes ``formal/statements``: all that the proofs in Coq claim, without the proofs.

    python -m formal.statements [--check]

For each file of ``formal`` that has a final statement (one that ``Assumptions.v`` lists) there is one of the same name. It
has the final statements, the definitions, variables and hypotheses that they need, and the comments on these, all word by
word and in their order. Proofs, lemmas on the way and definitions that only proofs use are left out. Whoever reads these
files knows what is claimed; Coq has checked the same text in the files above them. ``--check`` writes nothing, and its
exit status is 1 if something would change.
"""

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

FORMAL = Path(__file__).resolve().parent
STATEMENTS = FORMAL / "statements"
NAMED = (
    "Definition",
    "Fixpoint",
    "Inductive",
    "Record",
    "Theorem",
    "Lemma",
    "Corollary",
    "Let",
    "CoFixpoint",
    "Example",
)
PROVED = ("Theorem", "Lemma", "Corollary", "Example")
CONTEXT = ("Section", "End", "Variable", "Variables", "Hypothesis", "Hypotheses", "Context", "Module")
SCOPE = ("From", "Require", "Import", "Open", "Notation", "Infix", "Local", "Arguments", "Delimit", "Set")
PROOF_ENDS = ("Qed.", "Defined.", "Abort.")
BULLETS = "{}-+* \n"


@dataclass(frozen=True)
class Sentence:
    """One sentence of Coq.

    Attributes:
        file: Name of the file, without its ending.
        comment: The comment right before it.
        text: The sentence.
    """

    file: str
    comment: str
    text: str

    @property
    def word(self) -> str:
        """The first word: what kind of sentence it is."""
        return re.split(r"[\s(]", self.text, maxsplit=1)[0]

    @property
    def opens(self) -> bool:
        """Whether it begins a section or a module."""
        return self.word in ("Section", "Module") and ":=" not in self.text

    @property
    def says(self) -> bool:
        """Whether it defines or states something that is seen outside of its section."""
        return self.word != "Let" and bool(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """What it defines or states; fields and constructors, too."""
        if self.word not in NAMED:
            return ()
        first = re.match(r"\w+\s+(\w+)", self.text)
        found = [first[1]] if first else []
        if self.word == "Record":
            found += re.findall(r"[{;]\s*(\w+)\s*:", self.text) + re.findall(r":=\s*(\w+)\s*\{", self.text)
        if self.word == "Inductive":
            found += re.findall(r"(?::=|\|)\s*(\w+)", self.text)
        if self.word == "Fixpoint":
            found += re.findall(r"\bwith\s+(\w+)", self.text)
        return tuple(found)

    @property
    def used(self) -> set[str]:
        """All words of it."""
        return set(re.findall(r"[A-Za-z_][\w']*", self.text))


def final_statements() -> list[str]:
    """Returns the names of the statements whose assumptions are printed, in order."""
    both = (FORMAL / name for name in ("Assumptions.v", "AssumptionsReals.v"))
    return [name for file in both for name in re.findall(r"Print Assumptions (\w+)\.", file.read_text("utf-8"))]


def sources() -> list[str]:
    """Returns the names of all files with proofs, in the order in which they are read."""
    make = (FORMAL / "Makefile").read_text("utf-8")
    listed = re.search(r"^FILES = (.*?)\n[A-Z]", make, re.MULTILINE | re.DOTALL)
    assert listed is not None
    return [*listed[1].replace("\\\n", " ").split(), "TwoLevelsReal", "Rounding"]


def sentences(name: str) -> list[Sentence]:
    """Returns the sentences of a file, without those of its proofs."""
    kept, in_proof = [], False
    for sentence in _cut(name, (FORMAL / f"{name}.v").read_text("utf-8")):
        in_proof = in_proof or sentence.word in ("Proof.", "Proof")
        if not in_proof:
            kept.append(sentence)
        if sentence.text.lstrip(BULLETS) in PROOF_ENDS:
            in_proof = False
    return kept


def _cut(file: str, text: str) -> list[Sentence]:
    """Returns every sentence with the comment right before it, or on the line where it ends.

    Comments nest, and texts in quotes may hold anything.
    """
    found: list[Sentence] = []
    comment, start, place = "", 0, 0
    while place < len(text):
        if text.startswith("(*", place):
            end = _end_of_comment(text, place)
            between = text[start:place]
            if found and not between.strip() and "\n" not in between and found[-1].text not in PROOF_ENDS:
                found[-1] = replace(found[-1], text=f"{found[-1].text} {text[place:end]}")
                start = end
            elif not between.strip():
                comment, start = text[place:end], end
            place = end
        elif text[place] == '"':
            place = text.index('"', place + 1) + 1
        elif text[place] == "." and (place + 1 == len(text) or text[place + 1].isspace()):
            found.append(Sentence(file, comment, text[start : place + 1].strip()))
            comment, start, place = "", place + 1, place + 1
        else:
            place += 1
    return found


def _end_of_comment(text: str, place: int) -> int:
    depth = 0
    while True:
        if text.startswith("(*", place):
            depth, place = depth + 1, place + 2
        elif text.startswith("*)", place):
            depth, place = depth - 1, place + 2
            if not depth:
                return place
        else:
            place += 1


def needed(parts: Iterable[Sentence], final: Iterable[str]) -> set[str]:
    """Returns the names of final statements and of all definitions that these need, one through the other."""
    listed, statements = list(parts), set(final)
    defines: dict[str, list[Sentence]] = {}
    for part in listed:
        for name in part.names:
            if part.word not in PROVED or name in statements:
                defines.setdefault(name, []).append(part)
    hypotheses = [
        part for part in listed if part.word in ("Hypothesis", "Hypotheses", "Variable", "Variables", "Context")
    ]
    of_files = {part.file: [each for each in hypotheses if each.file == part.file] for part in listed}
    found: set[str] = set()
    waiting = [name for name in statements if name in defines]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for part in defines[name]:
            words = part.used.union(*(each.used for each in of_files[part.file]))
            waiting += [word for word in words if word in defines and word not in found]
    return found


def statement_files() -> dict[str, str]:
    """Returns the text of every file of statements, by its name."""
    parts = {name: sentences(name) for name in sources()}
    final = final_statements()
    names = needed((part for each in parts.values() for part in each), final)
    files = {}
    for name, listed in parts.items():
        kept = _without_loose_ends([part for part in listed if _is_kept(part, names, final)])
        if any(part.says for part in kept):
            files[f"{name}.v"] = _written(name, kept)
    return files


def _is_kept(part: Sentence, names: set[str], final: Iterable[str]) -> bool:
    if part.word in PROVED:
        return any(name in final for name in part.names)
    if part.word in NAMED:
        return bool(set(part.names) & names)
    return part.word in (*CONTEXT, *SCOPE)


def _without_loose_ends(parts: list[Sentence]) -> list[Sentence]:
    """Leaves out sections in which nothing is stated, and variables of a section after which nothing is."""
    kept: list[Sentence] = []
    is_read = [True]  # for each open section, from its end on: whether something was stated after this place
    for part in reversed(_without_empty_sections(parts)):
        if part.word == "End":
            is_read.append(False)
        elif part.opens:
            is_read.pop()
        is_variable = part.word in (*CONTEXT, "Let") and part.word != "End" and not part.opens
        if part.says:
            is_read = [True] * len(is_read)
        if not is_variable or is_read[-1]:
            kept.append(part)
    return kept[::-1]


def _without_empty_sections(parts: list[Sentence]) -> list[Sentence]:
    """Leaves out sections in which nothing is defined or stated."""
    while True:
        for begin, part in enumerate(parts):
            if not part.opens:
                continue
            name = part.text.split()[1].rstrip(".")
            end = next(i for i in range(begin, len(parts)) if parts[i].text.startswith(f"End {name}."))
            if not any(each.says for each in parts[begin:end]):
                parts = parts[:begin] + parts[end + 1 :]
                break
        else:
            return parts


def _written(name: str, parts: list[Sentence]) -> str:
    head = (
        f"(* What {name}.v claims: its definitions and final statements, without proofs. Written by statements.py. *)"
    )
    lines, depth = [head], 0
    for part in parts:
        if part.word == "End":
            depth -= 1
        indent = "  " * depth
        if part.opens or part.names:
            lines.append("")
        lines += [_indented(text, indent) for text in (part.comment, part.text) if text]
        if part.opens:
            depth += 1
    return "\n".join(lines) + "\n"


def _indented(text: str, indent: str) -> str:
    """Returns lines as they stand, the first one below the others."""
    return indent + text


@cache
def written() -> dict[str, tuple[str, int, str]]:
    """Returns, for what the files of statements state or define, the file, the line and the text with its comment."""
    found = {}
    for file in sorted(STATEMENTS.glob("*.v")):
        text = file.read_text("utf-8")
        for part in _cut(file.name, text):
            for name in part.names[:1]:
                line = 1 + text[: text.index(part.text)].count("\n")
                found[name] = (file.name, line, f"{part.comment}\n{part.text}".strip())
    return found


def place_of(name: str) -> tuple[str, int]:
    """Returns the file of statements that has a name, and the line."""
    if name not in written():
        raise LookupError(f"no file of statements has {name}")
    file, line, _ = written()[name]
    return file, line


def statement(name: str) -> str:
    """Returns a final statement or a definition as it stands in its file of statements, with its comment."""
    if name not in written():
        raise LookupError(f"no file of statements has {name}")
    return written()[name][2]


def main() -> int:
    """Writes the files, or compares them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    files = statement_files()
    there = {file.name: file.read_text("utf-8") for file in STATEMENTS.glob("*.v")}
    if parser.parse_args().check:
        return int(files != there)
    for name in there.keys() - files.keys():
        (STATEMENTS / name).unlink()
    for name, text in files.items():
        (STATEMENTS / name).write_text(text, "utf-8")
    print(f"{len(files)} files, {sum(text.count(chr(10)) for text in files.values()):,} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
