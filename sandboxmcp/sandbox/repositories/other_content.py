"""The judges of what other tools obey in a folder and below it: version control beside git, and package managers' settings.

As with git, what is not known to run nothing is unusual. A list of keys says what is known; every other line is unusual. Not
judged: Subversion and CVS, whose working copies name no program; build files that people run. Sources: hg's `help config`; jj's
documentation on configuration; the manuals of Breezy, Darcs and Pijul on hooks; Fossil's `settings`; Android's repo, whose
command runs `.repo/repo/main.py`; yarn's documentation on `.yarnrc.yml` and `.yarnrc`; pnpm's on `.pnpmfile.cjs`; npm's
`config`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from functools import partial

from sandboxmcp.sandbox.repositories.git_config import is_harmless_url
from sandboxmcp.sandbox.repositories.judged_folder import Reading, Unusual

_BLANK = re.compile(r"\s*(?:[#;].*)?")
_SECTION = re.compile(r"\[([\w.-]+)\]\s*")
_HG_SETTING = re.compile(r"(default|default-push|username)\s*=\s*(\S.*)")
_JJ_KEYS = frozenset({"user", "revset-aliases"})
_BZR_SETTING = re.compile(r"(?:parent|push|submit|public|bound)_(?:location|branch)\s*=\s*(\S*)\s*|bound\s*=\s*()\w+\s*")
_YARN_SETTING = re.compile(r"([A-Za-z]+):\s+([\w./@^~+-]+)\s*(?:#.*)?")
_YARN_KEYS = frozenset(
    """
    approvedGitRepositories checksumBehavior compressionLevel defaultProtocol defaultSemverRangePrefix enableColors
    enableGlobalCache enableHardenedMode enableImmutableInstalls enableInlineBuilds enableInlineHunks enableMessageNames
    enableMirror enableNetwork enableOfflineMode enableProgressBars enableScripts enableTelemetry enableTimers httpTimeout
    httpRetry installStatePath networkConcurrency nmHoistingLimits nmMode nmSelfReferences nodeLinker npmAlwaysAuth
    pnpFallbackMode pnpMode preferInteractive preferReuse winLinkType
    """.split()
)
_YARN1_SETTING = re.compile(r'"?([A-Za-z-]+)"? +("?)[\w./@^~:+-]*\2\s*')
_YARN1_KEYS = frozenset(
    "registry lastUpdateCheck disable-self-update-check save-prefix network-timeout network-concurrency strict-ssl "
    "version-tag-prefix version-git-tag version-git-message enable-pnp ignore-scripts ignore-engines".split()
)
_NPM_PROGRAMS = frozenset(
    """
    pnpmfile global-pnpmfile script-shell shell git node-options onload-script init-module init.module editor viewer browser
    globalconfig userconfig globalignorefile prefix shell-emulator use-node-version node-gyp scripts-prepend-node-path
    """.split()
)
"""Keys of npm's and pnpm's that name programs, or files that are run or obeyed. Other keys are too many to list."""


def judge_hg(reading: Reading, files: tuple[str, ...] = ("hgrc", "hgrc-not-shared")) -> None:
    """A Mercurial or Sapling folder: no configuration but where to pull from, and none of another repository's.

    Raises:
        Unusual: why it is not ordinary.
    """
    found = reading.names(".")
    for name in files:
        section = ""
        for line in _lines(reading, name) if name in found else ():
            if header := _SECTION.fullmatch(line):
                section = header[1]
                continue
            setting = _HG_SETTING.fullmatch(line)
            if setting is None or (section, setting[1] == "username") not in (("ui", True), ("paths", False)):
                raise _unknown(name)
            if section == "paths" and not is_harmless_url(setting[2].strip()):
                raise _unknown(name)
    if shared := {"sharedpath", "shared"}.intersection(found):
        raise Unusual(f"{min(shared)} leads to another repository")
    if b"shared" in (reading.text("requires") or b""):
        raise Unusual("it shares another repository's configuration")


def judge_jj(reading: Reading) -> None:
    """A Jujutsu folder: no configuration but names and aliases of revisions, and a repository of its own.

    Raises:
        Unusual: why it is not ordinary.
    """
    for name in ("repo/config.toml", "workspace-config.toml"):
        try:
            settings = tomllib.loads((reading.text(name) or b"").decode())
        except (ValueError, RecursionError):
            raise Unusual(f"{name} cannot be understood") from None
        if set(settings) - _JJ_KEYS:
            raise Unusual(f"{name} sets more than names and aliases")


def judge_bzr(reading: Reading) -> None:
    """A Bazaar or Breezy folder: `post_commit` and its like in a branch's settings are Python that is run.

    Raises:
        Unusual: why it is not ordinary.
    """
    for name in ("branch/branch.conf", "branch/control.conf", "control.conf", "repository/control.conf"):
        for line in _lines(reading, name):
            found = _BZR_SETTING.fullmatch(line)
            if not found or not is_harmless_url(found[1] or ""):
                raise _unknown(name)


def judge_settings_with_hooks(reading: Reading, settings: str) -> None:
    """A folder of a tool whose settings name hooks: Darcs, Pijul.

    Raises:
        Unusual: why it is not ordinary.
    """
    if next(_lines(reading, settings), None) is not None:
        raise Unusual(f"{settings} can name hooks")


def judge_yarn(reading: Reading, name: str) -> None:
    """`.yarnrc.yml`: `yarnPath` and `plugins` are programs. Only plain lines are understood.

    Raises:
        Unusual: why it is not ordinary.
    """
    for line in _lines(reading, name):
        found = _YARN_SETTING.fullmatch(line)
        if not found or found[1] not in _YARN_KEYS:
            raise _unknown(name)


def judge_yarn1(reading: Reading, name: str) -> None:
    """`.yarnrc` of yarn 1: `yarn-path` is a program.

    Raises:
        Unusual: why it is not ordinary.
    """
    for line in _lines(reading, name):
        found = _YARN1_SETTING.fullmatch(line)
        if not found or found[1] not in _YARN1_KEYS:
            raise _unknown(name)


def judge_npm(reading: Reading, name: str) -> None:
    """`.npmrc`, which pnpm reads too: no key that names a program.

    Raises:
        Unusual: why it is not ordinary.
    """
    for line in _lines(reading, name):
        key = line.partition("=")[0].strip().strip("\"'").lower().replace("_", "-").rstrip("[]")
        if key in _NPM_PROGRAMS or "${" in key or "\\" in key:
            raise Unusual("it sets a key that names a program")


def always_unusual(reading: Reading, why: str) -> None:
    """Raises: Unusual, always."""
    raise Unusual(why)


def _lines(reading: Reading, name: str) -> Iterator[str]:
    """Those of a file that are neither blank nor a comment; none where there is no file.

    Raises:
        Unusual: it is not UTF-8, or has control characters.
    """
    try:
        text = (reading.text(name) or b"").decode()
    except UnicodeDecodeError:
        raise Unusual(f"{name} is not UTF-8") from None
    for line in re.split(r"\r\n|\r|\n", text):
        if any(ord(letter) < 32 and letter != "\t" for letter in line) or any(letter in line for letter in "\x7f\x85\u2028\u2029"):
            raise Unusual(f"{name} has control characters")
        if not _BLANK.fullmatch(line):
            yield line


def _unknown(name: str) -> Unusual:
    return Unusual(f"{name} has a line that may run a program")


FOLDERS: dict[str, Callable[[Reading], None]] = {
    ".hg": judge_hg,
    ".sl": partial(judge_hg, files=("config", "hgrc", "hgrc-not-shared")),
    ".jj": judge_jj,
    ".bzr": judge_bzr,
    "_darcs": partial(judge_settings_with_hooks, settings="prefs/defaults"),
    ".pijul": partial(judge_settings_with_hooks, settings="config"),
    ".repo": partial(always_unusual, why="repo runs the programs in it"),
}
"""Judges by the name of the folder, which they read in."""
FILES: dict[str, Callable[[Reading, str], None]] = {
    ".yarnrc.yml": judge_yarn,
    ".yarnrc": judge_yarn1,
    ".npmrc": judge_npm,
    ".pnpmfile.cjs": lambda reading, name: always_unusual(reading, "pnpm runs it"),
    ".pnpmfile.mjs": lambda reading, name: always_unusual(reading, "pnpm runs it"),
    "pnpmfile.js": lambda reading, name: always_unusual(reading, "pnpm runs it"),
    ".fslckout": lambda reading, name: always_unusual(reading, "settings of fossil, which can name programs, lie in a database"),
    "_fossil_": lambda reading, name: always_unusual(reading, "settings of fossil, which can name programs, lie in a database"),
}
"""Judges by the name of the file, in small letters; they read in the folder that it is in."""
