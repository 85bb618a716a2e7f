"""The code blocks of a page, and how to run them.

All blocks of a page run in order, in one folder and one Python namespace, as a reader would type them:

- ``python`` blocks run; a ``text`` block right below one is what it must print;
- ``console`` blocks hold commands behind ``$ `` and, below each, what it must print; ``$ echo $?`` asks for the
  exit status, which must otherwise be 0; ``bash`` blocks hold commands alone;
- a block with a ``title`` is a file of that name, whatever its language.

``...`` in what must be printed stands for anything. A comment right above a block says more about it:

- ``<!-- not run: why -->`` leaves it out, and so does ``<!-- needs: data -->`` where the real datasets are missing;
- ``<!-- given: runs/digits -->``, anywhere on a page, is a run that was trained and certified before;
- ``<!-- numbers vary -->`` above the output: numbers need only be near, because training rounds differently on
  other machines; times may be any.
"""

import contextlib
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

from agnncert.cli import main

SHELL = ("console", "bash")
_FENCE = re.compile(r"(?P<indent>[ ]*)(?P<ticks>`{3,})(?P<language>\w*)(?P<rest>.*)")
_TITLE = re.compile(r'title="([^"]+)"')
_MARK = re.compile(r"\s*<!-- (not run|needs|numbers vary)(: .+)? -->")
_GIVEN = re.compile(r"^<!-- given: (\S+) -->$", re.MULTILINE)
_NUMBER = re.compile(r"-?\d[\d,]*(\.\d*)?(e[-+]?\d+)?")
_OTHER_PROGRAMS = ("cat", "ls", "head")


@dataclass(frozen=True)
class Block:
    """One fenced block: where it stands, what it holds, and what it must print (None: anything)."""

    page: Path
    line: int
    language: str
    text: str
    title: str = ""
    mark: str = ""
    output: str | None = None
    numbers_vary: bool = False
    right_below: bool = False

    @property
    def runs(self) -> bool:
        return bool(self.title) or self.language == "python" or self.language in SHELL

    @property
    def is_typed(self) -> bool:
        """Whether it shows output that nothing compares."""
        if self.language == "text":
            return not self.right_below
        return self.language == "console" and self.mark == "not run"

    def __str__(self) -> str:
        return f"{self.page.name}, line {self.line}"


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page that can be run, each with the output that it must have."""
    found = list(fenced_blocks(page))
    runnable = []
    for block, after in pairwise([*found, None]):
        if not block.runs:
            continue
        expects = (
            block.language == "python"
            and not block.title
            and after is not None
            and after.language == "text"
            and after.right_below
        )
        if expects:
            block = replace(block, output=after.text, numbers_vary=after.numbers_vary)
        runnable.append(block)
    return runnable


def fenced_blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks of a page, also those that cannot be run."""
    lines = page.read_text(encoding="utf-8").splitlines()
    number, above, last_end = 0, "", -1
    while number < len(lines):
        fence = _FENCE.fullmatch(lines[number])
        if fence is None:
            above = lines[number] if lines[number].strip() else above
            if lines[number].strip() and not _MARK.fullmatch(lines[number]):
                last_end = -1
            number += 1
            continue
        end = next(
            k for k in range(number + 1, len(lines)) if lines[k].strip() == fence["ticks"]
        )  # a block that does not end is a mistake on the page
        title, mark = _TITLE.search(fence["rest"]), _MARK.fullmatch(above)
        yield Block(
            page,
            number + 1,
            fence["language"],
            dedent("\n".join(lines[number + 1 : end])),
            title=title[1] if title else "",
            mark=mark[1] if mark else "",
            numbers_vary=bool(mark) and mark[1] == "numbers vary",
            right_below=last_end >= 0,
        )
        number, above, last_end = end + 1, "", end


def runs_given_to(page: Path) -> list[str]:
    """Folders of finished runs that a page takes for granted."""
    return _GIVEN.findall(page.read_text(encoding="utf-8"))


def run_page(blocks: list[Block], has_data: bool) -> int:
    """Runs the blocks of one page in the current folder; returns how many were run."""
    names: dict[str, object] = {"__name__": "page"}
    done = 0
    for block in blocks:
        if block.mark == "not run" or (block.mark == "needs" and not has_data):
            continue
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text + "\n", encoding="utf-8")
        elif block.language == "python":
            _run_python(block, names)
        else:
            _run_commands(block)
        done += 1
    return done


def _run_python(block: Block, names: dict[str, object]) -> None:
    code = compile("\n" * block.line + block.text, str(block.page), "exec")  # errors name the page's lines
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    if block.output is not None:
        require_output(printed.getvalue(), block.output, str(block), block.numbers_vary)


def _run_commands(block: Block) -> None:
    steps = list(commands_of(block))
    for (command, output), (following, wanted) in pairwise([*steps, ("", "")]):
        if command == "echo $?":
            continue
        status, printed = _run_command(command, block)
        expected = int(wanted) if following == "echo $?" else 0
        assert status == expected, f"{block}: $ {command} ended with status {status}, not {expected}:\n{printed}"
        if output:
            require_output(printed, output, f"{block}: $ {command}", block.numbers_vary)


def commands_of(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with what it must print."""
    joined = block.text.replace("\\\n", " ")
    if block.language == "bash":
        for line in joined.splitlines():
            if line.strip() and not line.startswith("#"):
                yield line.strip(), ""
        return
    head, *parts = re.split(r"^\$ ", joined, flags=re.MULTILINE)
    assert not head.strip(), f"{block}: a console block begins with a command behind '$ '"
    for part in parts:
        command, _, output = part.partition("\n")
        yield command.strip(), output.strip("\n")


def _run_command(command: str, block: Block) -> tuple[int, str]:
    program, *words = shlex.split(command, comments=True)
    if program == "agnncert":
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(words)
        return status, out.getvalue() + (err.getvalue() if status else "")  # else it holds progress only
    assert program in _OTHER_PROGRAMS, f"{block}: {program} is not run here; mark the block <!-- not run: why -->"
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def require_output(printed: str, expected: str, where: str, numbers_vary: bool = False) -> None:
    """Raises unless the output is the expected one, where ``...`` stands for anything.

    If numbers vary, each must be near the expected one (``is_near``), because training rounds differently on other
    machines. Times may be any.
    """
    found, wanted = _tidy(printed), _tidy(expected)
    if not numbers_vary:
        pieces = [re.escape(piece) for piece in wanted.split("...")]
        if not re.fullmatch(".*?".join(pieces), found, flags=re.DOTALL):
            raise AssertionError(f"{where} printed\n{printed}\nbut the page says\n{expected}")
        return
    numbers = numbers_printed(found, wanted)
    if numbers is None:
        raise AssertionError(f"{where} printed\n{printed}\nbut the page says\n{expected}")
    stated = [number[0] for number in _NUMBER.finditer(wanted)]
    far = [
        f"{there} instead of {told}"
        for told, there, is_time in zip(stated, numbers, _times(wanted), strict=True)
        if not is_time and not is_near(there, told)
    ]
    if far:
        raise AssertionError(f"{where} printed {', '.join(far)}. The output is\n{printed}")


def numbers_printed(printed: str, expected: str) -> list[str] | None:
    """Returns the numbers of an output where the expected ones are; None if the words differ."""
    pieces = [" ".join(_NUMBER.sub("NUMBER", piece).split()) for piece in expected.split("...")]
    words = r"\s*.*?\s*".join(re.escape(piece).replace(r"\ ", r"\s+") for piece in pieces)
    found = re.fullmatch(words.replace("NUMBER", f"({_NUMBER.pattern})"), printed.strip(), flags=re.DOTALL)
    return None if found is None else list(found.groups()[:: _NUMBER.groups + 1])


def is_near(number: str, other: str) -> bool:
    """Returns whether a share is at most .15 away, a number up to 100 (percent) at most 15, and others a quarter.

    Example:
        >>> is_near("0.81", "0.9"), is_near("27 ", "10"), is_near("1,078", "1,000")
        (True, False, True)
    """
    here, there = (float(text.replace(",", "")) for text in (number, other))
    if abs(there) <= 1:
        return abs(here - there) <= 0.15
    return abs(here - there) <= max(15, abs(there) / 4 if abs(there) > 100 else 0)


def _times(expected: str) -> list[bool]:
    """Returns for each number whether it is a time: of seconds, or of the last two columns of a comparison."""
    marks, is_comparison = [], False
    for line in expected.splitlines():
        numbers = list(_NUMBER.finditer(line))
        is_comparison = line.endswith("time / forward") or (is_comparison and bool(line.strip()))
        in_columns = len(numbers) - 2 if is_comparison else len(numbers)
        for place, number in enumerate(numbers):
            named = re.match(r" s\b|  +s\b", line[number.end() :]) or re.search(
                r"seconds of \w+: $", line[: number.start()]
            )
            marks.append(bool(named) or place >= in_columns)
    return marks


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
