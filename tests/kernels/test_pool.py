"""The spare kernel: when it starts, and who gets it."""

from __future__ import annotations

from sandboxmcp.core.model import Script
from sandboxmcp.kernels import pool
from sandboxmcp.kernels.sandbox_session import RunSession


def capture_files(session: RunSession) -> set[str]:
    return {path.name for path in session._captures.iterdir()}


def test_an_answer_does_not_wait_while_the_next_spare_is_started(make_inside):
    inside = make_inside()

    async def counted() -> tuple[int, int]:
        async with inside.runner.session() as session:
            await session.run(Script("first", "python", "1", 20.0))
            assert await session._pool.spare_ready()
            before = capture_files(session)
            await session.run(Script("second", "python", "1", 20.0))
            at_the_answer = capture_files(session)
            assert await session._pool.spare_ready()
            return len(at_the_answer - before), len(capture_files(session) - before)

    assert inside.wait(counted()) == (0, 2)  # a kernel that starts makes a file for each of its streams first


def test_who_wants_a_kernel_does_not_wait_for_the_moment_in_which_its_spare_would_start(make_inside, monkeypatch):
    monkeypatch.setattr(pool, "BEHIND_S", 3600.0)
    inside = make_inside()

    async def in_a_row() -> list[str]:
        async with inside.runner.session() as session:
            return [(await session.run(Script("one", "python", "1", 20.0))).status for _ in range(3)]

    assert inside.wait(in_a_row()) == ["ok", "ok", "ok"]
