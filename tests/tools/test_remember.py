"""Error lines of a stored stream carry the numbers that reading it back gives them."""

from __future__ import annotations

from sandboxmcp.core.model import NewSource, Outcome, Script, StreamCapture
from sandboxmcp.render.items import Stream
from sandboxmcp.session import Session
from sandboxmcp.tools.remember import remember, with_error_lines


def test_how_long_storing_took_is_known(session: Session) -> None:
    file = session.store.captures_dir / "out"
    file.write_bytes(b"one\n")
    outcome = Outcome(Script("", "shell", "x"), "ok", 0, 0.0, StreamCapture(file, 4, 4))
    assert remember(session, outcome, label="", source_label="x", origin="execute", batch="b").stored_s > 0


def test_error_lines_are_numbered_as_they_are_read_even_beside_very_long_ones(session: Session) -> None:
    lines = ["all quiet", "x" * 50 + " error: first " + "y " * 900, "ERROR: second", "fine " * 400, "ERROR: third", "end"] * 3
    new = NewSource("out", "execute", session.project, session.id)
    source = session.store.add(new, "\n".join(lines))
    found = with_error_lines(session, Stream(source, None)).errors
    assert {number for number, text in found} >= {3, 5, 9, 11, 15, 17}
    assert all(text[:200] in lines[number - 1] for number, text in found)
