"""Statements in Coq stand apart from proofs, and every link from a sentence to its proof leads somewhere."""

import re

import pytest

from formal import properties, statements
from formal.properties import PROOFS, PROPERTIES, README, source_of
from tests.support.paths import PROJECT

FILES = statements.statement_files()


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_statements_are_those_of_the_files_with_proofs() -> None:
    there = {file.name: file.read_text("utf-8") for file in statements.STATEMENTS.glob("*.v")}
    assert there == FILES, "run python -m formal.statements"


def test_every_final_statement_is_there_word_by_word_and_has_a_proof_in_its_source() -> None:
    final = statements.final_statements()
    assert len(final) > 150
    seen = set()
    for name, text in FILES.items():
        source = squeezed(re.sub(r"\(\*.*?\*\)", " ", (statements.FORMAL / name).read_text("utf-8"), flags=re.DOTALL))
        for part in statements._cut(name, text):
            if part.word in statements.PROVED:
                bare = squeezed(re.sub(r"\(\*.*?\*\)", " ", part.text, flags=re.DOTALL))
                assert f"{bare} Proof." in source, (name, part.names)
                seen.update(part.names)
    assert seen == set(final)


def test_no_proof_and_no_claim_without_one_is_among_the_statements() -> None:
    for name, text in FILES.items():
        bare = re.sub(r"\(\*.*?\*\)", " ", text, flags=re.DOTALL)
        assert not re.search(r"\b(Proof|Qed|Defined|Admitted|Axiom|Parameter|Conjecture)\b", bare), name


def test_what_a_statement_needs_is_defined_before_it_in_some_file() -> None:
    """Names of the project that the final statements use are defined in the files of statements."""
    defined = {name for text in FILES.values() for part in statements._cut("", text) for name in part.names}
    everywhere = {
        name
        for file in statements.sources()
        for part in statements.sentences(file)
        if part.says and part.word not in statements.PROVED
        for name in part.names
    }
    for text in FILES.values():
        for part in statements._cut("", text):
            if part.word in statements.PROVED:
                assert not (part.used & everywhere) - defined, part.names


def test_list_and_page_say_what_the_rows_say() -> None:
    for file, text in properties.texts().items():
        assert file.read_text("utf-8") == text, "run python -m formal.properties"


def test_every_link_of_the_list_leads_to_the_line_that_it_names() -> None:
    links = re.findall(r"\[`?([^]`]+)`?\]\(([^)\s]+)\)", README.read_text("utf-8"))
    assert len(links) > 100
    for shown, link in links:
        file, _, part = link.partition("#")
        path = (README.parent / file).resolve()
        assert path.exists(), link
        if part.startswith("L"):
            line = path.read_text("utf-8").splitlines()[int(part[1:]) - 1]
            assert re.search(rf"\b{shown.split('.')[-1]}\b", line), (shown, link, line)


@pytest.mark.parametrize("row", PROPERTIES, ids=lambda row: row.anchor)
def test_a_row_leads_to_proof_function_recount_and_test(row) -> None:
    headings = re.findall(r"^#+ (.+)$", PROOFS.read_text("utf-8"), re.MULTILINE)
    assert row.ours in headings
    assert re.search(r"^(    )?def |^class ", source_of(row.prover), re.MULTILINE)
    assert row.recount.startswith(("src/agnncert/verifier/", "packages/")), "a recount is the verifier's"
    assert source_of(row.recount)
    assert source_of(row.test).startswith("def test_")
    section = PROOFS.read_text("utf-8").partition(f"# {row.ours}\n")[2].partition("\n#")[0]
    named = set(re.findall(r"`([a-z_0-9]+)`", section))
    assert row.coq[0] in named, f"the section does not name {row.coq[0]}"


def test_every_theorem_that_is_proved_in_coq_has_a_row() -> None:
    text = PROOFS.read_text("utf-8")
    sections = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    in_coq = {each.splitlines()[0] for each in sections if each.startswith("Theorem") and "*In Coq:*" in each}
    assert in_coq <= {row.ours for row in PROPERTIES}


def test_the_page_shows_statements_and_functions() -> None:
    from docs.hooks import pages  # loads every command

    page = pages.on_page_markdown((PROJECT / "docs" / "theorems.md").read_text("utf-8"))
    assert "<!-- coq" not in page
    assert "<!-- source" not in page
    assert "Theorem node_centric_certificate" in page
    for row in PROPERTIES:
        assert f"## {row.sentence}\n" in page
        assert row.prover.rpartition(":")[2].rpartition(".")[2] in page


def test_three_questions_of_a_reader_are_answered_by_following_links() -> None:
    """From "no injected node can change this label" to theorem, statement, proof, functions and test."""
    for words, theorem in (
        ("injected node", "node_centric"),
        ("wrong training labels", "label_votes"),
        ("decision about this pair", "pairs"),
    ):
        (row,) = [each for each in PROPERTIES if words in each.sentence]
        assert row.coq[0].startswith(theorem)
        assert "Theorem" in statements.statement(row.coq[0])
        assert f"](#{properties.slug(row.sentence)})" in properties.page()
        assert f"](proofs.md#{row.anchor})" in properties.page()


def test_the_readme_counts_the_lines_of_the_proofs() -> None:
    kept_out = {"Assumptions", "AssumptionsReals", "Extract"}
    files = {file.stem: file for file in statements.FORMAL.glob("*.v") if file.stem not in kept_out}
    lines = {name: sum(map(bool, map(str.strip, file.read_text("utf-8").splitlines()))) for name, file in files.items()}
    text = README.read_text("utf-8")
    stated = {(name, int(number)) for name, number in re.findall(r"`(\w+)` (\d+)", text) if name in lines}
    assert stated == {(name, lines[name]) for name, _ in stated}
    assert len(stated) > 40
    assert f"In all {sum(lines.values()):,} lines that are not blank." in text
