"""git's configuration of a repository, read as git reads it, and which of its keys are ordinary.

The list says what is allowed: `git init`, `git clone`, `git remote`, `git branch` and `git submodule` write these keys, and git
runs nothing for any of their values. Every other key makes a repository unusual, since git may run a program for it. A file
that this parser does not understand completely is unusual too: a parser that differs from git's is a hole. Sources: git's
config.c (`git_parse_source`, `parse_value`), git-config(1), remote.c and transport.c for URLs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from sandboxmcp.sandbox.repositories.judged_folder import MAX_BYTES

_BOM = b"\xef\xbb\xbf"
_HEADER = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?\]')
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"'}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

_ANY = frozenset(
    """
    core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase core.precomposeunicode
    core.symlinks core.autocrlf core.eol core.safecrlf core.quotepath core.abbrev core.compression core.untrackedcache
    core.preloadindex core.checkstat core.trustctime core.sharedrepository core.longpaths core.sparsecheckout
    core.sparsecheckoutcone core.commitgraph core.multipackindex core.whitespace core.bigfilethreshold user.name user.email
    user.useconfigonly author.name author.email committer.name committer.email init.defaultbranch pull.rebase pull.ff
    push.default push.autosetupremote push.followtags fetch.prune fetch.prunetags fetch.parallel fetch.writecommitgraph merge.ff
    merge.conflictstyle merge.renamelimit rebase.autosquash rebase.autostash rebase.updaterefs
    gc.auto gc.autodetach gc.pruneexpire index.version index.sparse index.threads feature.manyfiles feature.experimental
    pack.threads pack.windowmemory pack.writereverseindex status.showuntrackedfiles status.submodulesummary status.branch
    status.short log.date log.showsignature diff.algorithm diff.renames diff.colormoved diff.submodule diff.ignoresubmodules
    diff.mnemonicprefix diff.noprefix color.ui commit.gpgsign commit.verbose tag.gpgsign tag.sort branch.sort
    branch.autosetupmerge branch.autosetuprebase checkout.defaultremote checkout.guess advice.detachedhead
    advice.addembeddedrepo extensions.objectformat extensions.compatobjectformat extensions.refstorage extensions.worktreeconfig
    extensions.preciousobjects extensions.noop extensions.relativeworktrees submodule.active submodule.recurse
    submodule.fetchjobs submodule.propagatebranches receive.denycurrentbranch receive.denynonfastforwards receive.denydeletes
    uploadpack.allowfilter uploadpack.allowanysha1inwant uploadpack.allowreachablesha1inwant uploadpack.allowtipsha1inwant
    lfs.repositoryformatversion
    """.split()
)
"""Whole keys, for whose values git runs nothing. A newer git that ran something for one of these would make a hole here."""
_ANY_OF = {
    "remote": frozenset(
        "fetch push mirror tagopt prune prunetags skipdefaultupdate skipfetchall promisor partialclonefilter gh-resolved "
        "followremotehead".split()
    ),
    "branch": frozenset(
        "merge rebase description vscode-merge-base gh-merge-base github-pr-owner-number gk-merge-base gk-last-accessed "
        "gk-last-modified".split()  # not mergeoptions: `--strategy=../x` is a program
    ),
    "submodule": frozenset("active branch ignore fetchrecursesubmodules shallow".split()),
}
"""Last parts of keys with a name in the middle."""
_URLS = {
    "remote": frozenset({"url", "pushurl"}),
    "branch": frozenset({"remote", "pushremote"}),  # a URL may stand where a remote's name does
    "submodule": frozenset({"url"}),
}
_URL_KEYS = frozenset({"remote.pushdefault", "extensions.partialclone"})
_UPDATES = frozenset({"checkout", "rebase", "merge", "none"})
_SCHEMES = frozenset("http https ssh git file git+ssh ssh+git".split())
_WORDS = re.compile(r"""[\s"';&|()]+""")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)")


class NotUnderstood(ValueError):
    """A file whose meaning for git is not certain; the message says why."""


def parse_config(data: bytes) -> list[tuple[str, str | None]]:
    """(key, value) of each setting, in order; the key in small letters but for the name in its middle. None: no value is given.

    Raises:
        NotUnderstood: it is too large, or git would refuse it, or could read it otherwise than this does.
    """
    if len(data) > MAX_BYTES:
        raise NotUnderstood("it is too large")
    try:
        text = data.removeprefix(_BOM).decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise NotUnderstood("it is not UTF-8") from None
    if _CONTROL.search(text):
        raise NotUnderstood("it has control characters")
    return list(_settings(text if text.endswith("\n") else f"{text}\n"))


def _settings(text: str) -> Iterator[tuple[str, str | None]]:
    section, at = "", 0
    while at < len(text):
        letter = text[at]
        if letter in " \t\n":
            at += 1
        elif letter in "#;":
            at = text.index("\n", at)
        elif letter == "[":
            if not (header := _HEADER.match(text, at)):
                raise NotUnderstood("it has a section that git would refuse")
            middle = None if header[2] is None else re.sub(r"\\(.)", r"\1", header[2])
            section = header[1].lower() + ("" if middle is None else f".{middle}")
            at = header.end()
        elif section and (name := _NAME.match(text, at)):
            value, at = _value(text, name.end())
            yield f"{section}.{name[0].lower()}", value
        else:
            raise NotUnderstood("it has a line that git would refuse")


def _value(text: str, at: int) -> tuple[str | None, int]:
    """The value that begins at the sign of equality, and where the next line begins."""
    while text[at] in " \t":
        at += 1
    if text[at] == "\n":
        return None, at + 1
    if text[at] != "=":
        raise NotUnderstood("it has a line that git would refuse")
    kept, quoted, end, at = list[str](), False, 0, at + 1
    while True:
        letter = text[at]
        at += 1
        if letter == "\n":
            if quoted:
                raise NotUnderstood("it has a quote without an end")
            return "".join(kept[:end]), at
        if letter in " \t" and not quoted:
            if kept:
                kept.append(letter)
            continue
        if letter in "#;" and not quoted:
            at = text.index("\n", at)
            continue
        if letter == '"':
            quoted = not quoted
            end = len(kept)
            continue
        if letter == "\\":
            letter, at = text[at], at + 1
            if letter == "\n":
                if at >= len(text):
                    raise NotUnderstood("it ends within a line")
                continue
            if letter not in _ESCAPES:
                raise NotUnderstood("it has an escape that git would refuse")
            letter = _ESCAPES[letter]
        kept.append(letter)
        end = len(kept)


def unusual_key(settings: list[tuple[str, str | None]], also: frozenset[str] = frozenset()) -> str | None:
    """The first key for which git may run something, or which is not known to be harmless. None: there is none.

    `also`: whole keys that are allowed in this place too.
    """
    return next((key for key, value in settings if key not in also and not _is_ordinary(key, value or "")), None)


def shown_key(key: str) -> str:
    """A key without the name in its middle, which a script may have chosen for whoever reads it."""
    section, _, rest = key.partition(".")
    middle, _, last = rest.rpartition(".")
    return f"{section[:40]}.{'….' if middle else ''}{last[:40]}"


class Named(NamedTuple):
    """A path that a value names."""

    path: str
    in_file: bool = False
    """It is relative to the file of configuration, not to the project."""
    may_be_folder: bool = False
    may_be_missing: bool = False


def named_paths(settings: list[tuple[str, str | None]]) -> list[Named]:
    """What values name as programs, hooks or further settings: the words with a slash of all values that git may run."""
    found = list[Named]()
    for key, value in settings:
        section, last = key.partition(".")[0], key.rpartition(".")[2]
        if value and section in ("include", "includeif") and last == "path":
            found.append(Named(value, in_file=True, may_be_missing=True))
        elif value and key == "core.hookspath":
            found.append(Named(value, may_be_folder=True, may_be_missing=True))
        elif value and not _is_ordinary(key, value):
            words = [word for word in _WORDS.split(value.lstrip("!")) if word]
            found += [Named(word, may_be_missing=not number) for number, word in enumerate(words) if "/" in word.rstrip("/")]
    return found


def _is_ordinary(key: str, value: str) -> bool:
    section, _, rest = key.partition(".")
    middle, dot, last = rest.rpartition(".")
    if not dot:
        return key in _ANY or (key in _URL_KEYS and is_harmless_url(value))
    if section == "remote" and not is_harmless_url(middle):
        return False
    if last in _URLS.get(section, ()):
        return is_harmless_url(value)
    if (section, last) == ("submodule", "update"):
        return value in _UPDATES
    return last in _ANY_OF.get(section, ())


def is_harmless_url(url: str) -> bool:
    """Whether git runs no helper for it that the URL names: `ext::sh -c …`, `transport::…` and options for ssh are none.

    A path is harmless by itself: what lies there in the workspace is judged as any other repository.
    """
    if not url.isprintable() or "::" in url or url.startswith("-"):
        return False
    if scheme := _SCHEME.match(url):
        return scheme[1].lower() in _SCHEMES and not scheme[2].rpartition("@")[2].startswith("-") and not scheme[2].startswith("-")
    host = url.partition(":")[0]
    return "://" not in host and not host.rpartition("@")[2].startswith("-")
