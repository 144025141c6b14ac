"""What of an output goes to the screen: harmless, a screenful, in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.shell.screen import Left, Terminal, Through, Window


def shown(*pieces: tuple[str, bytes], styled: bool = False, rows: int = 24) -> tuple[str, Left]:
    """What stands on a terminal of 80 columns after these pieces, and what was left out."""
    written: list[str] = []
    window = Window(Terminal(written.append, lambda: (80, rows), styled))
    for stream, piece in pieces:
        window.feed(stream, piece)  # type: ignore[arg-type]
    left = window.finish(lambda left: f"{left.lines} more")
    return "".join(written), left


def test_a_short_output_is_shown_as_it_comes() -> None:
    assert shown(("out", b"a\nb"), ("out", b"c\n"))[0] == "a\nbc\n"


def test_a_long_output_shows_head_count_and_tail() -> None:
    text, left = shown(("out", b"".join(b"%d\n" % n for n in range(1000))))
    lines = text.split("\n")
    assert (lines[:2], lines[12], lines[13], lines[-2]) == (["0", "1"], "⋯ 983 more", "995", "999")
    assert left == Left(983, {"out": 13, "err": 1})


def test_an_output_that_just_fits_has_no_count() -> None:
    text, left = shown(("out", b"".join(b"%d\n" % n for n in range(17))))
    assert (text, left.lines) == ("".join(f"{n}\n" for n in range(17)), 0)


def test_wrapped_lines_take_the_rows_that_they_need() -> None:
    text, left = shown(("out", (b"x" * 400 + b"\n") * 10))
    assert (text.count("x" * 400), left.lines) == (2, 3)


def test_a_line_without_end_is_cut_and_said() -> None:
    text, _ = shown(("out", b"y" * 1_000_000))
    assert (len(text) < 400, "more characters" in text, "⋯" in text) == (True, True, True)


def test_what_the_other_stream_had_begun_keeps_its_place() -> None:
    assert shown(("out", b"..."), ("err", b"Traceback\n"))[0] == "...\nTraceback\n"


def test_a_rewritten_line_is_redrawn_in_place() -> None:
    text, _ = shown(("out", b"1%"), ("out", b"\r2%"), ("out", b"\r3%\n"), styled=True)
    assert text == "1%\r\x1b[K2%\r\x1b[K3%\n"


def test_a_character_in_two_pieces_is_one() -> None:
    assert shown(("out", "é".encode()[:1]), ("out", "é".encode()[1:] + b"\n"))[0] == "é\n"


@given(st.lists(st.binary(max_size=60), max_size=12))
def test_no_control_character_ever_reaches_the_screen(pieces: list[bytes]) -> None:
    text, _ = shown(*(("out", piece) for piece in pieces))
    assert [letter for letter in text if ord(letter) < 32 and letter not in "\n\t"] == []


@given(st.lists(st.binary(max_size=60), max_size=12))
def test_through_a_pipe_everything_comes_and_is_harmless(pieces: list[bytes]) -> None:
    written: list[str] = []
    through = Through(written.append, written.append)
    for piece in pieces:
        through.feed("out", piece)
    through.finish(lambda left: "")
    text = "".join(written)
    assert (text.count("\n"), "\x1b" in text) == (b"".join(pieces).count(b"\n"), False)
