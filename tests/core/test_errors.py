"""The tree of errors: exit codes, and messages that end with what to do."""

from pathlib import Path

import pytest

from sandboxmcp.core.errors import (
    BrokenPack,
    DeniedError,
    KernelError,
    SandboxmcpError,
    SandboxUnavailable,
    StoreError,
    UsageError,
)

EXIT_CODES = {SandboxmcpError: 1, UsageError: 2, DeniedError: 3, SandboxUnavailable: 4, KernelError: 4, StoreError: 5}


@pytest.mark.parametrize(("kind", "code"), EXIT_CODES.items(), ids=lambda value: getattr(value, "__name__", str(value)))
def test_every_error_has_the_exit_code_of_the_contract(kind: type[SandboxmcpError], code: int) -> None:
    assert (kind("It broke").exit_code, issubclass(kind, SandboxmcpError)) == (code, True)


def test_a_message_is_what_happened_and_then_the_fix() -> None:
    error = UsageError("No language 'cobol'.", "Use python or shell.")

    assert (str(error), error.what, error.fix) == (
        "No language 'cobol'. Use python or shell.",
        "No language 'cobol'.",
        "Use python or shell.",
    )


def test_a_message_without_a_fix_is_left_as_it_is() -> None:
    assert str(StoreError("The store is locked")) == "The store is locked"


def test_a_kernel_error_quotes_what_the_kernel_wrote() -> None:
    error = KernelError("The kernel died", "Try again.", stderr="  Fatal: no memory\n")

    assert str(error) == "The kernel died. Try again.\nIt wrote: Fatal: no memory"


def test_a_broken_pack_names_file_and_line() -> None:
    error = BrokenPack(Path("team.toml"), 12, "unknown action 'forbid'")

    assert (str(error), error.exit_code, error.file, error.line) == (
        "team.toml:12: unknown action 'forbid'. Mend the pack; nothing runs until it loads.",
        6,
        Path("team.toml"),
        12,
    )
