"""What is no message of JSON-RPC is answered with an error that its sender can put down to a request."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import jsonrpc_message_adapter

from sandboxmcp.server.refusals import refusal

DEEP = "[" * 20_000 + "]" * 20_000
LINES = {
    "nested-too-deep": ('{"jsonrpc":"2.0","id":4,"method":"m","params":{"x":' + DEEP + "}}", 4, -32700),
    "id-behind-it": ('{"method":"m","params":{"x":' + DEEP + ',"id":1},"id":"a\\"b"}', 'a"b', -32700),
    "cut-off": ('{"jsonrpc":"2.0","id":7,"method":', 7, -32700),
    "cut-off-in-the-id": ('{"jsonrpc":"2.0","id":"7', None, -32700),
    "nonsense": ("nonsense", None, -32700),
    "number": ('{"jsonrpc":"2.0","id":15,"method":"m","params":{"x":' + "9" * 10_000 + "}}", 15, -32700),
    "no-request": ('{"id":8}', 8, -32600),
    "another-version": ('{"jsonrpc":"1.0","id":"x","method":"ping"}', "x", -32600),
    "batch": ('[{"jsonrpc":"2.0","id":11,"method":"ping"}]', None, -32600),
    "value-called-id": ('{"x":"id","y":{"id":3},"method":5}', None, -32600),
}


def refused(line: str) -> Any:
    """What answers the line, which the parser must refuse."""
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError as error:
        return refusal(line, error)
    raise AssertionError("it is a message")


@pytest.mark.parametrize(("line", "number", "code"), LINES.values(), ids=LINES)
def test_the_error_has_the_id_of_the_request_where_there_is_one(line: str, number: int | str | None, code: int) -> None:
    answer = refused(line)
    assert (answer.id, answer.error.code) == (number, code)
    assert f'"id":{"null" if number is None else ""}' in answer.model_dump_json(by_alias=True, exclude_unset=True)


@pytest.mark.parametrize(
    "line",
    ["", " \n", '{"jsonrpc":"2.0","id":[],"result":{}}', '{"id":1,"error":' + DEEP + "}"],
    ids=["empty", "blank", "result", "error"],
)
def test_blank_lines_and_broken_answers_are_not_answered(line: str) -> None:
    assert refused(line) is None


@given(st.lists(st.sampled_from(["{", "}", "[", "]", '"', "\\", '"id"', ":", ",", "1", '"a"', " ", "null"])).map("".join))
def test_any_row_of_pieces_is_refused_without_a_fault(line: str) -> None:
    assert refusal(line, ValueError("x")) is None or line.strip()
