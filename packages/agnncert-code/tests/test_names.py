import pytest

from agnncert_code.names import mentioned, name_edges, written


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x = y ;", "x"),
        ("x += y ;", "x"),
        ("++ i ;", "i"),
        ("int a , * b = 0 , c [ 3 ] ;", "a b c"),
        ("const char * s", "s"),
        ("struct node * p = q ;", "p"),
        ("size_t n = strlen ( s ) ;", "n"),
        ("f ( & x , y & z ) ;", "x"),
        ("p -> q [ i ] = 3 ;", "p"),
        ("* p = 3 ;", "p"),
        ("for ( int i = 0 ; i < n ; i ++ )", "i"),
        ("for ( auto & v : w )", "v"),
        ("return x ;", ""),
        ("if ( a == b )", ""),
        ("g ( a , b ) ;", ""),
        ("a . b = c ;", "a"),
        (", x ;", ""),
        ("* = ;", ""),
    ],
)
def test_names_that_a_statement_writes(text, names):
    assert written(text) == set(names.split())


def test_members_and_keywords_are_no_names():
    assert mentioned("while ( p -> next != NULL && x . y :: z )") == {"p", "x"}


def test_statements_are_joined_by_the_names_they_share_wherever_they_stand():
    texts = ["x = 1 ;", "f ( x ) ;", "y = x ;", "g ( ) ;"]
    assert name_edges(texts) == [(0, 1), (0, 2)]
    backwards = name_edges(texts[::-1])
    assert {(texts[::-1][a], texts[::-1][b]) for a, b in backwards} == {
        ("x = 1 ;", "f ( x ) ;"),
        ("x = 1 ;", "y = x ;"),
    }
