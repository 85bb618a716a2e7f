import pytest

from agnncert_code import flows, syntax


def arrows(body, kind, parameters=""):
    """Edges of one kind as "from > to", with statements shortened to what tells them apart."""
    statements = syntax.parse(f"void f({parameters}) {{ {body} }}").statements
    short = [s.text.replace(" ", "").rstrip(";") for s in statements]
    return {f"{short[a]} > {short[b]}" for a, b, k in flows.edges(statements) if k == kind}


def control(body):
    return arrows(body, flows.CONTROL)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a; b;", "voidf > a, a > b"),
        ("if (c) a; b;", "voidf > if(c), if(c) > a, a > b, if(c) > b"),
        ("if (c) a; else b; d;", "voidf > if(c), if(c) > a, if(c) > b, a > d, b > d"),
        ("if (c) { } else b; d;", "voidf > if(c), if(c) > d, if(c) > b, b > d"),
        ("if (c) a; else if (d) b; e;", "voidf > if(c), if(c) > a, if(c) > if(d), if(d) > b, if(d) > e, a > e, b > e"),
        ("while (c) a; b;", "voidf > while(c), while(c) > a, a > while(c), while(c) > b"),
        ("do a; while (c); b;", "voidf > a, a > dowhile(c), dowhile(c) > a, dowhile(c) > b"),
        (
            "while (c) { if (d) break; continue; } b;",
            "voidf > while(c), while(c) > if(d), if(d) > break, if(d) > continue, break > b, continue > while(c), while(c) > b",
        ),
        ("if (c) return; b;", "voidf > if(c), if(c) > return, if(c) > b"),
        ("goto l; a; l: b;", "voidf > gotol, gotol > l:, a > l:, l: > b"),
        (
            "switch (c) { case 1: a; case 2: b; break; default: d; } e;",
            "voidf > switch(c), switch(c) > case1:, switch(c) > case2:, switch(c) > default:, case1: > a, a > case2:, "
            "case2: > b, b > break, break > e, default: > d, d > e",
        ),
        ("switch (c) { case 1: a; } e;", "voidf > switch(c), switch(c) > case1:, switch(c) > e, case1: > a, a > e"),
        (
            "while (w) switch (c) { case 1: continue; case 2: break; }",
            "voidf > while(w), while(w) > switch(c), switch(c) > case1:, switch(c) > case2:, switch(c) > while(w), "
            "case1: > continue, continue > while(w), case2: > break, break > while(w)",
        ),
        (
            "try { a; throw x; } catch (E e) { b; } d;",
            "voidf > a, a > throwx, throwx > catch(Ee), a > catch(Ee), catch(Ee) > b, b > d",
        ),
        ("goto nowhere; a;", "voidf > gotonowhere"),
        ("\n#if X\n a; b;\n#else\n d;\n#endif\n e;", "voidf > #ifX, #ifX > a, a > b, b > e, #ifX > d, d > e"),
    ],
)
def test_control_flow(body, expected):
    assert control(body) == set(expected.split(", "))


def test_control_runs_through_the_parameters_into_the_body():
    assert arrows("g;", flows.CONTROL, "int a, int b") == {"voidf > inta", "inta > intb", "intb > g"}


def test_nesting_looks_through_blocks():
    assert arrows("{ if (c) { { a; } } }", flows.NESTING) == {"voidf > if(c)", "if(c) > a"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = 1; x = 2; g(x);", "x=2 > g(x)"),
        ("x = 1; if (c) x = 2; g(x);", "x=1 > g(x), x=2 > g(x)"),
        ("x = 1; while (c) { g(x); x = 2; }", "x=1 > g(x), x=2 > g(x)"),
        ("x = 1; return; g(x);", ""),
        ("a[0] = 1; a[1] = 2; g(a);", "a[0]=1 > g(a), a[0]=1 > a[1]=2, a[1]=2 > g(a)"),
        ("int x; h(&x); g(x);", "intx > h(&x), intx > g(x), h(&x) > g(x)"),
        ("x = 1; y = x; g(y);", "x=1 > y=x, y=x > g(y)"),
    ],
)
def test_data_flow(body, expected):
    assert arrows(body, flows.DATA) == {arrow for arrow in expected.split(", ") if arrow}


def test_values_of_parameters_flow_to_where_they_are_read():
    assert arrows("g(a); a = 0; g(b);", flows.DATA, "int a, int b") == {"inta > g(a)", "intb > g(b)"}


def test_long_functions_take_no_long_time():
    body = "".join(f"x{k % 50} = x{(k * 7) % 50}; if (c) goto l{k}; l{k}: ;" for k in range(2000))
    statements = syntax.parse(f"void f() {{ {body} }}").statements
    assert len(flows.edges(statements)) > 10_000
