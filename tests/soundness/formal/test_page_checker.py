"""The checker in report pages is the one that is extracted from the proofs, and counts without a largest number."""

import shutil
import subprocess
from typing import Any

import numpy as np
import pytest

from agnncert.report.html import checker_script
from tests.soundness.formal.test_formal import FORMAL, MAKE

PROGRAMS = ("coqc", "ocamlfind", "js_of_ocaml")
LIMITS = (0, 1, -1, 2**30, 2**31, -(2**31), 2**32, 2**53 - 1, 1 - 2**53, 2**53, 2**62, 2**63, 10**30, -(10**30))


def versions() -> tuple[str, str]:
    told = [["ocamlfind", "ocamlopt", "-version"], ["js_of_ocaml", "--version"]]
    ocaml, compiler = (subprocess.run(each, capture_output=True, text=True, check=True).stdout.strip() for each in told)
    return ocaml, compiler.partition("+")[0]


@pytest.mark.slow
def test_the_committed_checker_of_pages_is_what_the_proofs_give() -> None:
    if any(shutil.which(program) is None for program in PROGRAMS):
        pytest.skip("coqc, ocamlfind or js_of_ocaml is missing (Debian: coq, ocaml-findlib, js-of-ocaml)")
    if versions() != ("4.13.1", "4.0.0"):
        pytest.skip(f"the committed file was made with OCaml 4.13.1 and js_of_ocaml 4.0.0, here are {versions()}")
    subprocess.run([*MAKE, "browser/checker.js"], cwd=FORMAL, capture_output=True, check=True)
    built = (FORMAL / "browser" / "checker.js").read_text("utf-8")
    assert built == checker_script(), "run `make -C formal page`, and look at what has changed"


def arithmetic() -> str:
    """The arithmetic of formal/browser/runtime.js, as a script."""
    return (FORMAL / "browser" / "runtime.js").read_text("utf-8")


@pytest.mark.browser
def test_the_arithmetic_of_a_page_is_exact_beyond_doubles(blank_page: Any) -> None:
    """Sums, products and quotients of numbers around every limit of machines; half rounds down."""
    rng = np.random.default_rng(0)
    pairs = [(x, y) for x in LIMITS for y in LIMITS]
    pairs += [(int(x), int(y)) for x, y in rng.integers(-(2**62), 2**62, (200, 2))]
    ask = """([source, pairs]) => {
      const names = ["add", "sub", "mul", "div", "half"].map((name) => `agnncert_${name}`);
      const all = new Function(`${source}; return [agnncert_number, ${names}];`)();
      const [number, ...operations] = all;
      return pairs.map(([x, y]) => {
        const a = number(BigInt(x)), b = number(BigInt(y));
        return [...operations.map((operation) => String(operation(a, b))), a < b, a <= b, a === b];
      });
    }"""
    said = blank_page.evaluate(ask, [arithmetic(), [[str(x), str(y)] for x, y in pairs]])
    for (x, y), answers in zip(pairs, said, strict=True):
        expected = [x + y, x - y, x * y, x // y if y else 0, x // 2]
        assert answers == [*map(str, expected), x < y, x <= y, x == y], (x, y)


@pytest.mark.browser
def test_the_arithmetic_of_a_page_has_no_negative_zero(blank_page: Any) -> None:
    ask = "(source) => Object.is(new Function(`${source}; return agnncert_mul;`)()(0, -5), 0)"
    assert blank_page.evaluate(ask, arithmetic())
