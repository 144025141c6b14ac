"""A background loop that dies is told to its owner; one that is stopped is not."""

from __future__ import annotations

import asyncio

from sandboxmcp.core.loops import Loops, LoopState


async def for_ever() -> None:
    await asyncio.Event().wait()


async def failing() -> None:
    await asyncio.sleep(0)
    raise RuntimeError("no more")


async def a_dead_one_beside_a_living_one() -> tuple[list[str], tuple[LoopState, ...]]:
    told: list[str] = []
    died = asyncio.Event()

    def tell(why: str) -> None:
        told.append(why)
        died.set()

    loops = Loops(tell)
    loops.start("patient", for_ever())
    loops.start("short", failing())
    await asyncio.wait_for(died.wait(), 10)
    states = loops.states
    loops.stop()
    await asyncio.sleep(0)
    return told, states


def test_its_owner_learns_of_a_loop_that_dies_and_of_no_other() -> None:
    told, states = asyncio.run(a_dead_one_beside_a_living_one())
    assert told == ["its background loop short ended (RuntimeError: no more)"]
    assert states == (LoopState("patient", True, ""), LoopState("short", False, "RuntimeError: no more"))
