import subprocess
import sys

from agnncert_code.tokens import is_name, normalised, numbered, tokens


def test_comments_and_white_space_make_no_difference():
    plain = normalised("x=a+f(b);")
    assert plain == "x = a + f ( b ) ;"
    for other in ("x = a+ /* why */ f(b) ; // end", "x\t=\n a +\\\n f ( b );", "x=a+f(b)/**/;"):
        assert normalised(other) == plain


def test_tokens_that_differ_in_meaning_stay_apart():
    assert normalised("a = b + +c;") != normalised("a = b ++ c;")
    assert normalised('f("a b");') != normalised('f("a  b");')
    assert normalised("x = 1 .5;") != normalised("x = 1.5;")


def test_comment_marks_inside_strings_are_no_comments():
    assert tokens('f("/* no */", "//", \'"\');') == ["f", "(", '"/* no */"', ",", '"//"', ",", "'\"'", ")", ";"]
    assert tokens('R"x(a)" // ")x";') == ['R"x(a)" // ")x"', ";"]


def test_text_that_is_no_c_still_has_tokens():
    assert tokens('"open') == ['"', "open"]
    assert tokens("/* open") == ["/", "*", "open"]
    assert tokens("größe @ \u20ac") == ["größe", "@", "€"]


def test_a_normalised_text_is_its_own_normal_form():
    for text in ("a<<=b->c;", "L'x' u8\"y\" 0x1Fu 1'000 .5e+3f", "#define F(x) #x ## x"):
        assert normalised(normalised(text)) == normalised(text)


def test_ids_depend_on_how_often_a_text_occurs_not_on_where():
    before, after = numbered(["a", "b", "a"]), numbered(["a", "a", "b", "a"])
    assert set(after) - set(before) == {"#3 a"}
    assert set(before) <= set(after)


def test_ids_of_different_texts_differ_also_if_a_text_looks_like_a_number():
    assert len(set(numbered(["1 a", "a", "#1 a", "a"]))) == 4


def test_names_are_words_that_are_no_keywords():
    assert [is_name(token) for token in ("x", "_y1", "int", "NULL", "'x'", "1x", "+")] == [True, True] + [False] * 5


def test_the_room_is_loaded_without_torch_or_tree_sitter():
    script = (
        "import sys, agnncert_code; agnncert_code.normalised('x ;'); "
        "print([name for name in ('torch', 'tree_sitter') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"
