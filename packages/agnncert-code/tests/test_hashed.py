import numpy as np

from agnncert_code.features import KIND_COLUMNS, LONGEST, PIECES, features, pieces, split


def test_a_row_depends_on_its_own_text_alone():
    texts = ["x = 1 ;", "if ( a )", 'f ( "a b" ) ;', "while ( i < n && p -> q )"]
    together = features(texts)
    for k, text in enumerate(texts):
        assert np.array_equal(features([text])[0], together[k])
        assert np.array_equal(features([*reversed(texts), text])[-1], together[k])


def test_rows_are_the_same_on_every_machine():
    row = features(["free ( p ) ;"], columns=16)[0]
    assert row.dtype == np.float32
    assert np.flatnonzero(row[:16]).tolist() == [0, 1, 2, 3, 5, 6, 8, 10, 12, 14, 15]
    named = {KIND_COLUMNS[k] for k in np.flatnonzero(row[16:])}
    assert named == {"(", ";", "called", "name", "other", "tokens"}


def test_the_order_of_tokens_counts():
    a, b = features(["a = b ;", "b = a ;"])
    assert not np.array_equal(a[:256], b[:256])
    assert np.array_equal(a[256:], b[256:])


def test_long_statements_do_not_dominate():
    rows = features(["x ;", "x = " + "a [ i ] + " * 5000 + "1 ;"])
    for part in (rows[:, :256], rows[:, 256:]):
        assert np.allclose(np.linalg.norm(part, axis=1), 1)


def test_strings_with_spaces_are_one_token():
    assert split("f ( \"a b\" , ' ' ) ;") == ["f", "(", '"a b"', ",", "' '", ")", ";"]
    assert split("f ( ' ' ) ;") == ["f", "(", "' '", ")", ";"]


def test_nothing_gives_nothing():
    assert features([]).shape == (0, 256 + len(KIND_COLUMNS))
    assert np.isfinite(features([""])).all()


def test_pieces_are_tokens_and_parts_of_names_each_once():
    row = pieces(["readLine ( readLine , in_FILE2 ) ;"])[0]
    numbers = row[row > 0].tolist()
    assert len(numbers) == len(set(numbers)) == 11  # readLine read line ( , in_FILE2 in file 2 ) ;
    assert set(numbers) >= {pieces(["readLine"])[0, 0], pieces(["in_FILE2"])[0, 0]}
    assert (numbers[0], len(row)) == (pieces(["readLine ;"])[0, 0], LONGEST)
    assert 1 <= min(numbers) <= max(numbers) <= PIECES


def test_pieces_of_a_statement_follow_from_its_own_text():
    texts = ["a = b ;", "f ( x ) ;", "a = b ;", "", " ".join(f"v{k}" for k in range(100))]
    together = pieces(texts)
    assert all((pieces([text])[0] == row).all() for text, row in zip(texts, together, strict=True))
    assert (together[-1] > 0).all()
    assert not together[3].any()
