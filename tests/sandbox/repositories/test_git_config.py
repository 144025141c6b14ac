"""git's configuration is read as git reads it, and only keys that run nothing are ordinary."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxmcp.sandbox.repositories.git_config import NotUnderstood, is_harmless_url, parse_config, unusual_key

PIECES = (
    *"[core]|[core |[Remote \"o\"]|[a.B]|[a \"x\\\"y\"]".split("|"),
    *"fsmonitor|url|Key-1|=| = |x|\"|\\\"|\\\\|\\n|\\q|#|;|\n|\r\n|\t| |  |]|é".split("|"),
    "\\\n",
    "\ufeff",
)  # fmt: skip


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=150)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_what_is_understood_is_what_git_reads(tmp_path_factory, text):
    try:
        parsed = parse_config(text.encode())
    except NotUnderstood:
        return
    file = tmp_path_factory.getbasetemp() / "config"
    file.write_bytes(text.encode())
    done = subprocess.run(["git", "config", "--file", file, "--list", "--null"], capture_output=True)
    by_git = [part.decode() for part in done.stdout.split(b"\0") if part]
    ours = [key if value is None else f"{key}\n{value}" for key, value in parsed]
    assert (done.returncode, [one.replace("\t", " ") for one in by_git]) == (0, [one.replace("\t", " ") for one in ours])


NOT_UNDERSTOOD = {
    "a NUL": b"[core]\nfsmonitor=\0x\n",
    "a lone return": b"[core]\rfsmonitor=x\n",
    "a form feed": b"[core]\x0cfsmonitor=x\n",
    "not UTF-8": b"[core]\nx=\xff\n",
    "a quote without an end": b'[core]\nx="a\n',
    "an unknown escape": b"[core]\nx=\\q\n",
    "a key without a section": b"x=1\n",
    "a section over lines": b'[remote\n"x"]\nurl=y\n',
    "too large": b"#" * (2 << 20),
    "a word": b"[core]\nfsmonitor x\n",
    "the end within a line": b"[core]\nx=a\\",
}


@pytest.mark.parametrize("data", NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD.keys())
def test_what_git_could_read_otherwise_is_not_understood(data):
    with pytest.raises(NotUnderstood):
        parse_config(data)


UNUSUAL = """
core.fsmonitor core.sshCommand core.gitProxy core.editor core.pager core.askPass core.hooksPath core.alternateRefsCommand
core.worktree core.attributesFile core.excludesFile alias.st diff.external diff.x.textconv diff.x.command filter.x.clean
filter.x.smudge filter.x.process merge.x.driver merge.tool mergetool.x.cmd difftool.x.cmd include.path includeIf.x.path
credential.helper credential.x.helper gpg.program gpg.ssh.program url.x.insteadOf sequence.editor interactive.diffFilter
web.browser browser.x.cmd man.viewer man.x.cmd pager.status protocol.ext.allow trailer.x.command trailer.x.cmd remote.o.vcs
remote.o.uploadpack remote.o.receivepack remote.o.proxy remote.o.serverOption sendemail.smtpserver http.proxy
gc.recentObjectsHook uploadpack.packObjectsHook receive.procReceiveRefs ssh.variant lfs.customtransfer.x.path
lfs.extension.x.clean init.templateDir help.browser instaweb.httpd guitool.x.cmd svn-remote.x.url branch.m.mergeOptions
pull.twohead submodule.alternateErrorStrategy imap.tunnel blame.ignoreRevsFile commit.template notes.rewriteRef maintenance.x
extensions.unknown bitmap.x tar.x.command mailmap.file core.unknown push.gpgSign transfer.credentialsInUrl hook.x.command
""".split()


@pytest.mark.parametrize("key", UNUSUAL)
def test_a_key_that_is_not_listed_is_unusual(key):
    section, _, rest = key.partition(".")
    middle, _, last = rest.rpartition(".")
    header = f'[{section} "{middle}"]' if middle else f"[{section}]"
    assert unusual_key(parse_config(f"{header}\n\t{last} = value\n".encode())) is not None


DANGEROUS = {
    "a helper": '[remote "o"]\nurl = ext::sh -c touch%20x',
    "a helper by its scheme": '[remote "o"]\nurl = evil://host/x',
    "an option for ssh": '[remote "o"]\nurl = ssh://-oProxyCommand=x/y',
    "an option for ssh, short": '[remote "o"]\npushurl = -oProxyCommand=x:y',
    "an option for ssh behind a user": '[remote "o"]\nurl = ssh://u@-oProxyCommand=x/y',
    "a helper of a branch": '[branch "m"]\nremote = ext::sh',
    "a helper as a remote's name": '[remote "ext::sh -c x"]\nfetch = y',
    "a command of a submodule": '[submodule "s"]\nupdate = !touch x',
    "a helper to push to": "[remote]\npushDefault = ext::sh",
    "a helper of missing objects": "[extensions]\npartialClone = ext::sh",
    "the old form": "[remote.o]\nurl = ext::sh",
    "behind a section": "[core] fsmonitor = x",
    "continued": "[core]\nbare = false\nfs\\\nmonitor = x",
    "in capitals": "[CORE]\nFSMONITOR = x",
    "behind a mark": "\ufeff[core]\nfsmonitor = x",
    "without a value": "[core]\nfsmonitor",
}


@pytest.mark.parametrize("text", DANGEROUS.values(), ids=DANGEROUS.keys())
def test_a_value_that_names_a_program_is_unusual(text):
    try:
        assert unusual_key(parse_config(text.encode())) is not None
    except NotUnderstood:
        assert text == DANGEROUS["continued"]  # git refuses it as well


@pytest.mark.parametrize(
    "url", ["https://host/x.git", "git@host:x.git", "ssh://git@host:22/x", "/srv/x.git", "../x", "file:///srv/x", "origin", "."]
)
def test_a_url_that_names_no_program_is_harmless(url):
    assert is_harmless_url(url)
