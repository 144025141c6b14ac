"""Reasons in words: what happened, and what its reader can do. One table; a surface only names arguments its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sandboxmcp.core.reasons import Reason
from sandboxmcp.core.surface import argument
from sandboxmcp.core.text import in_gib
from sandboxmcp.sandbox.hints import no_network


def said(reasons: Iterable[Reason], *, after_status: bool = False) -> str:
    """Reasons in one line, parted by semicolons; empty for none. `after_status`: the status has been told before them."""
    return "; ".join(sentence(reason, after_status=after_status) for reason in reasons)


def sentence(reason: Reason, *, after_status: bool = False) -> str:
    """What one reason says, and what its reader can do."""
    text = _SAID[reason.code](reason.facts)
    killed = "killed: " if reason.code in _KILLED and not after_status else ""
    return killed + (f"{text}; {_NEXT[reason.next_step](reason.facts)}" if reason.next_step else text)


Words = Callable[[Mapping[str, Any]], str]

_KILLED: Mapping[str, Words] = {
    "memory_limit": lambda of: f"{in_gib(of['used'])} of memory, limit {in_gib(of['limit'])}",
    "shared_memory_limit": lambda of: f"{in_gib(of['used'])} of shared memory that no process maps, limit {in_gib(of['limit'])}",
    "memory_group_limit": lambda of: f"more memory than {in_gib(of['limit'])}",
    "cpu_limit": lambda of: f"more than {of['limit']:,} s of processor time",
    "tmpfs_files_limit": lambda of: f"{of['used']:,} files in /{of['folder']}, limit {of['limit']:,}",
    "workspace_size_limit": lambda of: f"the workspace grew by {in_gib(of['used'])}, limit {in_gib(of['limit'])}",
    "workspace_files_limit": lambda of: f"{of['used']:,} new files in the workspace, limit {of['limit']:,}",
    "messages_limit": lambda of: "its messages fill the server's memory",
    "neighbour_overran": lambda of: "what ran beside it met a limit and did not end in time",
    "tmpfs_filled": lambda of: "its files filled a memory folder",
    "watchdog_failed": lambda of: f"its watchdog failed ({of['error']})",
    "interrupt_unheeded": lambda of: f"it did not heed an interrupt for {of['waited_s']:g} s",
    "kernel_stopped": lambda of: f"its kernel was stopped by {of['by']}",
    "kernel_restarted": lambda of: f"its kernel was restarted by {of['by']}",
    "kernel_idle": lambda of: "its kernel was not used for too long (kernel_idle_s)",
    "unkillable": lambda of: "a script in its sandbox could not be ended otherwise",
    "launcher_silent": lambda of: "its launcher did not answer",
    "fork_overrun": lambda of: "a script in its sandbox made processes faster than they could be killed",
    "server_ended": lambda of: "the server was ended",
}
"""Reasons for which we end a script."""

_SAID: Mapping[str, Words] = {
    **_KILLED,
    "denied": lambda of: _denied(**of),
    "timeout": lambda of: f"timed out after {of['timeout_s']:g} s",
    "sandbox_ended": lambda of: "the sandbox ended under it; a script may have killed its launcher",
    "sigkill": lambda of: "killed by SIGKILL: by itself, by another script of this sandbox, or for memory",
    "signal": lambda of: f"ended by {of['signal']}",
    "interrupted": lambda of: f"interrupted by {of['by']}",
    "kernel_ended": lambda of: f"the kernel {of['kernel']} ended, its variables are gone",
    "kernel_kept": lambda of: f"it was interrupted, the variables of {of['kernel']} are kept",
    "results_dropped": lambda of: f"{of['dropped']} displayed results beyond the first {of['kept']} were not kept",
    "results_incomplete": lambda of: "what it displayed last did not come, or not whole; save it to a file instead",
    "results_lost": lambda of: f"{of['lost']} displayed results were lost: {of['trouble']}",
    "output_lost": lambda of: f"{of['bytes']:,} B of output were lost: {of['trouble']}",
    "stop_on_error": lambda of: "An item before it failed and stop_on_error is set.",
    "language_unavailable": lambda of: str(of["message"]),
    "no_network": lambda of: no_network(of["let_out"]),
    "git_masked": lambda of: (
        "git cannot replace a file that is shown masked in the sandbox: change branches outside, where these files differ"
    ),
    "git_partly_writable": lambda of: (
        "scripts may write the repository, but not its settings, hooks and worktrees, nor that of a linked worktree"
    ),
    "git_read_only": lambda of: (
        'the project\'s git repository is read-only in the sandbox; the user allows commits with the setting git = "rw"'
    ),
    "disk_full": lambda of: _disk_full(of["folders"], of["project"]),
    "probable_limit": lambda of: f"it probably met {of['limit']} ({of['value']:,}); raise it if that is meant",
    "workspace_guarded": lambda of: str(of["note"]),
    "recorded": lambda of: str(of["text"]),
}

_NEXT: Mapping[str, Words] = {
    "raise_timeout": lambda of: f"raise {argument('timeout_s')}, or run less",
    "raise_limit": lambda of: f"raise {of['setting']}",
    "print_instead": lambda of: "print instead",
}


def _denied(because: str, rule: str | None, line: int | None, instead: str) -> str:
    place = f"rule {rule}, line {line}" if line else f"rule {rule}"
    return f"{because.rstrip('.')}{f' ({place})' if rule else ''}. {instead}"


def _disk_full(folders: Iterable[str], project: bool) -> str:
    inside = ", ".join(sorted(folders))
    parts = [f"{inside} is full: remove files there, or raise limits.tmpfs"] if inside else []
    parts += ["the disk of the project is full: make room on it"] if project else []
    return f"what it wrote may not be whole, since {'; '.join(parts)}"
