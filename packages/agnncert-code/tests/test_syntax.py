import gzip
import json
import sys
from collections import Counter

import pytest

from agnncert.errors import AgnncertError
from agnncert_code import syntax
from agnncert_code.tokens import tokens
from tests.support.functions import FUNCTIONS


def texts(source, language="cpp"):
    return [s.text for s in syntax.parse(source, language).statements if s.text]


def the(source, text):
    return next(s for s in syntax.parse(source).statements if s.text == text)


def test_a_compound_statement_owns_its_head_only():
    source = (
        "void f() { if (a) { b(); } else while (c) d(); do e(); while (g); switch (h) { case 1: i(); default: j(); } }"
    )
    assert texts(source) == [
        "void f", "if ( a )", "b ( ) ;", "while ( c )", "d ( ) ;", "do while ( g ) ;", "e ( ) ;", "switch ( h )",
        "case 1 :", "i ( ) ;", "default :", "j ( ) ;",
    ]  # fmt: skip


@pytest.mark.parametrize("language", ["cpp", "c"])
def test_head_parameters_declarations_and_labels_are_statements(language):
    source = "static char *f(int a, char b[3]) { int i = 0, *p; for (i = 0; i < 3; i++) ; again: goto again; }"
    assert texts(source, language) == [
        "static char * f", "int a", "char b [ 3 ]", "int i = 0 , * p ;", "for ( i = 0 ; i < 3 ; i ++ )", "again :",
        "goto again ;",
    ]  # fmt: skip


def test_braces_empty_statements_and_comments_are_nobodys():
    plain = texts("int f() { if (a) b(); else c(); }")
    assert texts("int f() { /* x */ { if (a) { b();; } else { { c(); } } ; } } // y") == plain


def test_cpp_statements():
    source = "A::A(int x) : B(x), c_(0) { try { g(); } catch (const E& e) { throw; } for (auto& v : w) h(v); }"
    assert texts(source) == [
        "A :: A : B ( x ) , c_ ( 0 )", "int x", "g ( ) ;", "catch ( const E & e )", "throw ;", "for ( auto & v : w )",
        "h ( v ) ;",
    ]  # fmt: skip


def test_the_body_of_a_lambda_belongs_to_its_statement():
    assert texts("void f() { auto g = [&](int x) { return x; }; }") == [
        "void f",
        "auto g = [ & ] ( int x ) { return x ; } ;",
    ]


def test_a_function_with_empty_braces_is_a_function_also_before_a_semicolon():
    for text in ("static int *f(int a) { g(); };", "static int *f(int a) { };", "static int *f(int a) {}"):
        assert [t for t in texts(text) if t != "g ( ) ;"] == ["static int * f", "int a"]
    assert texts("void f() { T x(y) {}; int a[] = {}; }") == ["void f", "T x", "y", "int a [ ] = { } ;"]


def test_a_macro_with_a_body_is_one_statement():
    source = "void f() { for_each(a, b) { g(a); } }"
    assert texts(source) == ["void f", "for_each ( a , b )", "g ( a ) ;"]
    assert {"a", "b"} <= the(source, "for_each ( a , b )").reads


def test_preprocessor_lines_are_conditions():
    source = "void f() {\n#ifdef X\n a();\n#elif Y\n b();\n#else\n c();\n#endif\n}"
    assert texts(source) == ["void f", "# ifdef X", "a ( ) ;", "# elif Y", "b ( ) ;", "c ( ) ;"]
    roles = {s.text: s.role for s in syntax.parse(source).statements if s.text}
    assert roles["# elif Y"] == "else"
    assert roles["a ( ) ;"] == "body"


def test_text_that_does_not_parse_says_so_and_keeps_what_does():
    whole = syntax.parse("int f() { a(); b(); }")
    assert not whole.partial
    cut = syntax.parse("int f() { a(); list_for_each(x, y) { b(); } if (")
    assert cut.partial
    assert {"a ( ) ;", "b ( ) ;"} <= {s.text for s in cut.statements}
    assert any("list_for_each" in s.text for s in cut.statements)


@pytest.mark.parametrize(
    "source", ["", ";", "{", "}}}}", "\0", "((((", "/*", "int", "#if", "case", "\udcff x", "a:b:c:"]
)
def test_any_text_can_be_read(source):
    statements = syntax.parse(source).statements
    assert all(s.parent < k for k, s in enumerate(statements))


def test_nesting_without_end_is_no_problem():
    deep = 3000
    found = texts("void f() { " + "if (a) { " * deep + "b();" + " }" * deep + " }")
    assert found.count("if ( a )") == deep
    assert texts("void f() { x = " + "(" * deep + "1" + ")" * deep + "; }")[1].startswith("x = ( (")


def unowned(source):
    """Tokens that are in a text and in no statement, or the other way round."""
    owned = Counter(token for text in texts(source) for token in tokens(text))
    whole = Counter(tokens(source))
    return ((whole - owned) + (owned - whole)).keys() - {*"{}();,#", "else", "try", "endif"}


def test_every_token_belongs_to_one_statement_except_braces_and_the_like():
    for source in (*FUNCTIONS, "int f(int a, ...) { g(a); }", "int f(a, b) int a; char b; { x: ; }"):
        assert unowned(source) == set()


@pytest.mark.data
def test_every_token_of_real_functions_belongs_to_one_statement(data_root):
    with gzip.open(data_root / "BigVul" / "raw" / "bigvul_original_rows_200.jsonl.gz") as file:
        sources = [json.loads(line)["func"] for line in file]
    whole = [source for source in sources if not syntax.parse(source).partial]  # else a string may be cut in two
    assert len(whole) > 100
    assert [source for source in whole if unowned(source)] == []


def test_lines_and_spans_point_into_the_text():
    source = "int f()\n{\n  é();\n  if (a)\n    b();\n}"
    found = the(source, "if ( a )")
    assert found.line == 4
    start, end = found.span
    assert source.encode()[start:end].decode() == "if (a)\n    b();"


def variables(source):
    found = syntax.parse(f"void f() {{ {source} }}").statements[-1]
    return found.sets, found.alters, found.reads


@pytest.mark.parametrize(
    ("source", "sets", "alters", "reads"),
    [
        ("x = y;", {"x"}, set(), {"y"}),
        ("x += y;", {"x"}, set(), {"x", "y"}),
        ("x++;", {"x"}, set(), {"x"}),
        ("int x = y, *p, a[n];", {"x", "p", "a"}, set(), {"y", "n"}),
        ("a[i].b = y;", set(), {"a"}, {"a", "i", "y"}),
        ("*p = y;", set(), {"p"}, {"p", "y"}),
        ("p->q->r--;", set(), {"p"}, {"p"}),
        ("g(&x, y);", set(), {"x"}, {"g", "x", "y"}),
        ("if (auto x = g()) ;", {"x"}, set(), {"g"}),
        ("for (auto& v : w) ;", {"v"}, set(), {"w"}),
        ("for (int i = 0; i < n; i++) ;", {"i"}, set(), {"i", "n"}),
        ("int g(int);", set(), set(), set()),
    ],
)
def test_what_a_statement_sets_alters_and_reads(source, sets, alters, reads):
    assert variables(source) == (sets, alters, reads)


def test_functions_are_found_wherever_they_are_defined():
    source = "int a; namespace n { class C { int f() { return 1; } int g(); }; } int C::g() { return 2; }\n#if X\nint h() {}\n#endif"
    code = source.encode()
    found = syntax.function_nodes(syntax.parser("cpp").parse(code).root_node)
    assert [syntax.statements_of(node, code).statements[0].name for node in found] == ["f", "C::g", "h"]


def test_without_tree_sitter_the_error_says_what_to_install(monkeypatch):
    syntax.parser.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter_cpp", None)
    with pytest.raises(AgnncertError, match=r"pip install ./packages/agnncert-code"):
        syntax.parse("int f() {}")
    with pytest.raises(AgnncertError, match='"rust"'):
        syntax.parse("", "rust")
