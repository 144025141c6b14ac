"""The prompt on a terminal that can edit: several lines, highlighting, completion from the kernel, history per project."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import DynamicLexer, Lexer, PygmentsLexer, SimpleLexer

from sandboxmcp.core.errors import SandboxmcpError
from sandboxmcp.shell.commands import COMMANDS
from sandboxmcp.shell.inputs import wants_more
from sandboxmcp.shell.shell_session import ShellSession

_INDENT = "    "
_PYGMENTS = {"shell": "bash", "r": "splus"}


class Prompt:
    """Asks for inputs and for answers."""

    def __init__(self, shell: ShellSession) -> None:
        self._shell = shell
        self._prompt: PromptSession[str] = PromptSession(
            multiline=True,
            lexer=DynamicLexer(lambda: _lexer(shell.language)),
            completer=KernelCompleter(shell),
            complete_while_typing=False,
            history=history(shell.session.settings.data_dir, shell.session.settings.workspace, shell.session.masked),
            enable_history_search=True,
            key_bindings=_keys(shell),
            prompt_continuation=lambda width, *_: "." * (width - 1) + " ",
        )

    async def ask_input(self) -> str:
        """The next input. Raises: KeyboardInterrupt when it was given up, EOFError at the end."""
        return await self._prompt.prompt_async(f"{title(self._shell)}> ", handle_sigint=False)

    async def ask(self, question: str) -> str:
        """One line in answer to a question. Raises as `ask_input` does."""
        plain: PromptSession[str] = PromptSession(history=InMemoryHistory())
        return await plain.prompt_async(question, handle_sigint=False)


def title(shell: ShellSession) -> str:
    """Where the next input will run."""
    return shell.seat.title if shell.seat is not None else shell.language


class MaskedHistory(FileHistory):
    """A history whose file holds no credentials; what was typed now can be called back whole."""

    def __init__(self, file: str, mask: Callable[[str], str]) -> None:
        super().__init__(file)
        self._mask = mask

    def store_string(self, string: str) -> None:
        with contextlib.suppress(SandboxmcpError):  # without the packs nothing can be masked, so nothing is kept
            super().store_string(self._mask(string))


def history(data_dir: Path, workspace: Path, mask: Callable[[str], str]) -> History:
    """What was typed in this project, kept in a private file; forgotten at the end where none can be made."""
    folder = data_dir / "shell"
    file = folder / f"history-{hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        file.chmod(0o600)
        return MaskedHistory(str(file), mask)
    return InMemoryHistory()


def _lexer(language: str) -> Lexer:
    from pygments.lexers import find_lexer_class_by_name
    from pygments.util import ClassNotFound

    try:
        return PygmentsLexer(find_lexer_class_by_name(_PYGMENTS.get(language, language)))
    except ClassNotFound:
        return SimpleLexer()


class KernelCompleter(Completer):
    """Names from the kernel; the shell's own commands after a colon."""

    def __init__(self, shell: ShellSession) -> None:
        self._shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> list[Completion]:
        """Only the asynchronous way is used."""
        return []

    async def get_completions_async(self, document: Document, complete_event: CompleteEvent) -> AsyncGenerator[Completion, None]:
        """What could stand at the cursor."""
        text = document.text_before_cursor
        if text.startswith(":"):
            for name, command in COMMANDS.items():
                if name.startswith(text[1:]):
                    yield Completion(f":{name}", -len(text), display_meta=command.does)
            return
        for match, start in await self._asked(document):
            yield Completion(match, start)

    async def _asked(self, document: Document) -> list[tuple[str, int]]:
        seat = self._shell.seat
        if seat is None:
            return []
        try:
            found: dict[str, Any] = await seat.complete(document.text, document.cursor_position)
            start = int(found.get("cursor_start", document.cursor_position)) - document.cursor_position
            return [(match, min(start, 0)) for match in found.get("matches", ()) if str(match).isprintable()]
        except (SandboxmcpError, ValueError, TypeError):
            return []


def _keys(shell: ShellSession) -> KeyBindings:
    keys = KeyBindings()
    editing = has_focus(DEFAULT_BUFFER)
    in_indent = Condition(lambda: not get_app().current_buffer.document.current_line_before_cursor.strip())

    @keys.add("enter", filter=editing)
    def enter(event: KeyPressEvent) -> None:
        """Take the chosen completion; else run what is complete; else begin a new line with the indent that it needs."""
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif buffer.document.text_after_cursor.strip() or wants_more(buffer.text, shell.language):
            _new_line(event)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=editing)
    def new_line(event: KeyPressEvent) -> None:
        _new_line(event)

    @keys.add("tab", filter=editing & in_indent)
    def indent(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(_INDENT)

    return keys


def _new_line(event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    line = buffer.document.current_line_before_cursor
    deeper = _INDENT if line.rstrip().endswith(":") and not line.startswith(":") else ""
    buffer.insert_text("\n" + line[: len(line) - len(line.lstrip())] + deeper)
