"""git, pip, uv, npm and gh by the shipped pack `research`, against stand-ins for their servers that speak the real protocol."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

SECRET = "a-token-of-the-servers"


def needs(program):
    if shutil.which(program, path=f"{os.environ['PATH']}:{Path(sys.executable).parent}") is None:
        pytest.skip(f"{program} is not installed")


def at_home(host: str, port: int) -> list[str]:
    """Every name is here."""
    return ["127.0.0.1"]


@pytest.fixture
def make_research(make_session, authority):
    """A session with the pack `research`, as shipped, whose names all resolve to the tests' site."""

    def make(site, **environment: str):
        packs = ("research",)
        return make_session(site, packs, at_home, environment, network__authorities=str(authority.certificate))

    return make


# git


def git_handler(base: Any, root: Path) -> Any:
    """git's own server program behind HTTP, as CGI (git-http-backend(1))."""

    class Git(base):  # type: ignore[misc] # made by a fixture
        def do_GET(self):
            self.server.seen.append((self.command, self.path, dict(self.headers)))
            path, _, query = self.path.partition("?")
            body = self._body()
            names = {"Git-Protocol": "GIT_PROTOCOL", "Content-Type": "CONTENT_TYPE", "Content-Encoding": "HTTP_CONTENT_ENCODING"}
            given = {variable: self.headers[name] for name, variable in names.items() if self.headers[name]}
            environment = {**os.environ, **given, "GIT_PROJECT_ROOT": str(root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path}
            environment |= {"QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_LENGTH": str(len(body))}
            done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n"))
            status = int(headers.pop("Status", "200 OK").split()[0])
            self.reply(content, status, **headers)

        do_POST = do_GET

        def _body(self):
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            return body

    return Git


def git(*arguments, cwd):
    names = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *names, *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path):
    """A working copy with one commit, and the bare repository that it is pushed to."""
    needs("git")
    work = tmp_path / "work"
    work.mkdir()
    git("init", cwd=work)
    (work / "README").write_text("one\n")
    git("add", ".", cwd=work)
    git("commit", "-m", "one", cwd=work)
    git("clone", "--bare", str(work), str(tmp_path / "served" / "name.git"), cwd=tmp_path)
    git("remote", "add", "origin", str(tmp_path / "served" / "name.git"), cwd=work)
    return work


@pytest.fixture
def served(repository, make_site):
    return make_site(tls=True, handler=git_handler(make_site().RequestHandlerClass, repository.parent / "served"))


def test_git_clones_fetches_and_pulls_with_its_hooks_inside(repository, served, make_research):
    session = make_research(served)
    cloned = session.run("git clone -q $U/name.git && cat name/README && git -C name config remote.origin.url")
    (repository / "README").write_text("two\n")
    git("commit", "-am", "two", cwd=repository)
    git("push", "origin", "HEAD", cwd=repository)
    hook = "printf '#!/bin/sh\\ntouch hooked\\n' > .git/hooks/post-merge; chmod +x .git/hooks/post-merge"
    pulled = session.run(
        f"cd name; {hook}; git fetch -q && git log --oneline origin/HEAD | wc -l; git pull -q && cat README; ls hooked"
    )
    assert (cloned.text, cloned.stderr) == (f"one\n{served.url}/name.git\n", b"")
    assert (pulled.text, pulled.stderr) == ("2\ntwo\nhooked\n", b"")


def test_git_does_not_push(repository, served, make_research):
    session = make_research(served)
    session.run("git clone -q $U/name.git")
    served.seen.clear()
    commit = "git -c user.name=t -c user.email=t@t commit -q --allow-empty -m evil"
    ran = session.run(f"cd name && {commit}; git push -q origin HEAD; echo $?")
    assert ran.text != "0\n" and "this is not allowed here: only fetching is" in ran.stderr.decode()
    assert [path for _, path, _ in served.seen if "receive-pack" in path] == []
    assert git("log", "--oneline", cwd=repository.parent / "served" / "name.git").count("\n") == 1


@pytest.mark.parametrize("more", ["get $U/other /tmp/other", "push HEAD:refs/heads/x", "list for-push"])
def test_git_is_given_no_commands_when_the_server_speaks_no_version_2(repository, make_site, make_research, more):
    class Old(git_handler(make_site().RequestHandlerClass, repository.parent / "served")):  # type: ignore[misc] # made by a fixture
        def do_GET(self):
            del self.headers["Git-Protocol"]
            super().do_GET()

    served = make_site(tls=True, handler=Old)
    session = make_research(served)
    ran = session.run(
        f"printf 'capabilities\\nstateless-connect git-upload-pack\\n{more}\\n\\n' | git-remote-broker origin $U/name.git"
    )
    assert "this is not allowed here: only fetching is" in ran.stderr.decode()
    assert [path for _, path, _ in served.seen if not path.endswith("service=git-upload-pack")] == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/x.git", "git://127.0.0.1/x.git", "ssh://127.0.0.1/x.git", "https://me:pw@127.0.0.1/x.git"]
)
def test_git_reaches_nothing_by_another_way(served, make_research, url):
    session = make_research(served)
    ran = session.run(f"git ls-remote {url}; echo $?")
    assert (ran.text != "0\n", served.connections) == (True, 0)


# The box


EATERS = {
    "memory": "import time; x = bytearray(400 << 20); time.sleep(60)",
    "memory in a file without a name": "import os, time; os.posix_fallocate(os.memfd_create('x'), 0, 400 << 20); time.sleep(60)",
    "memory of children": "import os, time; os.fork(); os.fork(); x = bytearray(100 << 20); time.sleep(60)",
}


@pytest.fixture
def make_eater(site, make_session, tmp_path, monkeypatch):
    """A session with a program `eater` that runs some Python in its box."""

    def make(code, **limits):
        shape = f'[[broker]]\nprogram = "eater"\nverdict = "allow"\nrun = ["python3", "-c", {json.dumps(code)}]\n'
        (tmp_path / "eater.toml").write_text(f'[pack]\nname = "eater"\n{shape}[[broker.shape]]\nname = "all"\n')
        return make_session(site, ("default", str(tmp_path / "eater.toml")), **limits)

    return make


@pytest.mark.parametrize("code", EATERS.values(), ids=EATERS)
def test_a_brokered_program_has_no_more_memory_than_scripts_have(make_eater, code):
    session = make_eater(code, limits__memory="250MiB", network__time_s=20)
    ran = session.run("eater; echo $?")
    by_us = "more memory than 250 MiB" in ran.stderr.decode()
    by_the_kernel = ran.text in ("137\n", "1\n")  # where there is a control group
    with_its_script = ran.outcome.status == "killed"  # whom the machine's shared memory is put down to
    assert by_us or by_the_kernel or with_its_script
    assert ran.text != "0\n"
    assert ran.outcome.wall_s < 20


def test_a_brokered_program_has_no_more_processes_than_scripts_have(make_eater):
    code = "import os, time\nn = 0\ntry:\n    while n < 300:\n        if os.fork() == 0: time.sleep(9)\n        n += 1\n"
    session = make_eater(code + "except OSError: print(n < 64)", limits__processes=64)
    assert session.run("eater").text == "True\n"


# pip and uv


def wheel(name: str, version: str) -> bytes:
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": "here = True\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "".join(f"{file},,\n" for file in (f"{name}.py", f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD")),
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return packed.getvalue()


def index_handler(base):
    """A package index (PEP 503) with one project, as a wheel and as a source that must not be built."""
    files = {
        "demo-1.0-py3-none-any.whl": wheel("demo", "1.0"),
        "demo-2.0.tar.gz": b"never fetched",
        "onlysource-1.0.tar.gz": b"never",
    }

    class Index(base):  # type: ignore[misc,valid-type] # made by a fixture
        def say_simple(self, rest):
            project = rest.strip("/")
            links = "".join(f'<a href="/files/{file}">{file}</a>\n' for file in files if file.startswith(f"{project}-"))
            self.reply(f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), Content_Type="text/html")

        def say_files(self, rest):
            self.reply(files[rest], Content_Type="application/octet-stream")

    return Index


@pytest.fixture
def index(make_site):
    return make_site(tls=True, handler=index_handler(make_site().RequestHandlerClass))


def test_pip_downloads_wheels_and_builds_nothing(index, make_research):
    needs("pip")
    session = make_research(index, PIP_INDEX_URL=f"https://me:{SECRET}@pypi.org:{index.server_port}/simple/")
    ran = session.run(
        "pip download -q -d wheels demo; echo $?; ls wheels; pip download -q onlysource 2>/dev/null; echo $?; env | grep -c TOKEN"
    )
    assert ran.text == "0\ndemo-1.0-py3-none-any.whl\n1\n0\n"
    assert [seen.path for seen in index.seen if seen.path.endswith(".gz")] == []
    assert index.seen[-1].headers["Authorization"] == "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert SECRET not in session.run("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; ls -R ~ /tmp").text


def test_pip_takes_requirements_from_a_file_of_plain_names(index, make_research):
    needs("pip")
    session = make_research(index, PIP_INDEX_URL=f"https://pypi.org:{index.server_port}/simple/")
    good = session.run("printf '# ours\\ndemo>=1\\n' > r.txt; pip download -q --dest . -r r.txt; echo $?; ls *.whl")
    came = index.connections
    bad = session.run("printf 'demo\\n--no-binary :all:\\n' > r.txt; pip download -q --dest . -r r.txt; echo $?")
    assert (good.text, bad.text, index.connections) == ("0\ndemo-1.0-py3-none-any.whl\n", "2\n", came)
    assert "line 2 is not of a form that is allowed" in bad.stderr.decode()


OTHERWISE_READ = {
    "encoding": "# coding: utf-7\\n#+AAo---no-binary :all:+AAo-onlysource",
    "second line": "#\\n# vim: fileencoding=utf-7\\ndemo",
    "utf-16": "\\377\\376d\\000e\\000m\\000o\\000",
    "byte order mark": "\\357\\273\\277demo",
    "environment": 'demo; python_version > "${PIP_INDEX_URL}"',
    "option": "onlysource==1.0 --global-option=x",
    "option after a marker": 'onlysource; python_version > "3" --global-option=x',
    "option as a version": "demo== --pre",
}


@pytest.mark.parametrize("text", OTHERWISE_READ.values(), ids=OTHERWISE_READ)
def test_pip_is_passed_no_requirements_that_it_would_read_otherwise(index, make_research, text):
    needs("pip")
    session = make_research(index, PIP_INDEX_URL=f"https://me:{SECRET}@pypi.org:{index.server_port}/simple/")
    ran = session.run(f"printf '{text}\\n' > r.txt; pip download -q --dest . -r r.txt; echo $?")
    assert (ran.text, index.connections) == ("2\n", 0)
    assert "cannot pass r.txt on" in ran.stderr.decode()


def test_pip_takes_requirements_as_they_are_usually_written(index, make_research):
    needs("pip")
    session = make_research(index, PIP_INDEX_URL=f"https://pypi.org:{index.server_port}/simple/")
    lines = 'demo[a] >= 1.0, !=1.5 ; python_version > "3" and (os_name == "posix")  # - ours\\n\\n  # --no - $HOME\\ndemo~=1.0'
    assert session.run(f"printf '{lines}\\n' > r.txt; pip download -q -r r.txt; echo $?; ls *.whl").text == (
        "0\ndemo-1.0-py3-none-any.whl\n"
    )


def test_a_program_runs_inside_for_what_needs_no_network(index, make_research):
    needs("uv")
    session = make_research(index)
    assert (session.run("uv --version").text[:3], index.connections, session.log()) == ("uv ", 0, [])


def test_a_host_that_the_pack_does_not_name_is_not_reached(index, make_research):
    needs("uv")
    session = make_research(index, UV_DEFAULT_INDEX=f"https://elsewhere.example:{index.server_port}/simple/")
    ran = session.run("uv pip install -q --target libs demo 2>/dev/null; echo $?")
    assert (ran.text != "0\n", index.connections, session.log()[-1]["verdict"]) == (True, 0, "deny")
    assert "elsewhere.example is not among the domains" in session.log()[-1]["reason"]


def test_uv_installs_wheels_into_a_folder(index, make_research):
    needs("uv")
    session = make_research(index, UV_DEFAULT_INDEX=f"https://pypi.org:{index.server_port}/simple/")
    ran = session.run("uv pip install -q --target libs demo; echo $?; PYTHONPATH=libs python3 -c 'import demo; print(demo.here)'")
    assert ran.text == "0\nTrue\n"


# npm


def registry_handler(base):
    """An npm registry with one package."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        manifest = json.dumps({"name": "demo", "version": "1.0.0"}).encode()
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(manifest)
        archive.addfile(entry, io.BytesIO(manifest))
    tarball = gzip.compress(packed.getvalue())
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()

    class Registry(base):  # type: ignore[misc,valid-type] # made by a fixture
        def say_demo(self, rest):
            if rest.endswith(".tgz"):
                self.reply(tarball, Content_Type="application/octet-stream")
                return
            dist = {"tarball": f"https://{self.headers['Host']}/demo/-/demo-1.0.0.tgz", "integrity": integrity}
            version = {"name": "demo", "version": "1.0.0", "dist": dist}
            about = {"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
            self.reply(json.dumps(about).encode(), Content_Type="application/json")

    return Registry


def test_npm_views_and_packs_a_published_module(make_site, make_research):
    needs("npm")
    registry = make_site(tls=True, handler=registry_handler(make_site().RequestHandlerClass))
    session = make_research(registry, npm_config_registry=f"https://registry.npmjs.org:{registry.server_port}/")
    ran = session.run("npm view demo version; npm pack -s demo; echo $?; tar -tf demo-1.0.0.tgz", timeout_s=60)
    assert ran.text == "1.0.0\ndemo-1.0.0.tgz\n0\npackage/package.json\n"


# gh


def test_gh_reads_with_a_token_that_scripts_never_see(make_research, authority, make_site):
    needs("gh")
    plain = make_site()
    try:
        site = type(plain)(("127.0.0.1", 443), authority, github_handler(plain.RequestHandlerClass))
    except PermissionError:
        pytest.skip("gh speaks to port 443 only, which an ordinary user cannot serve")
    try:
        session = make_research(site, GH_TOKEN=SECRET)
        ran = session.run(
            "gh api repos/owner/name --jq .full_name; gh api -X DELETE repos/owner/name; echo $?; gh auth token; echo $?;"
            "gh api repos/owner/name --jq '$ENV.GH_TOKEN'; gh api repos/owner/name --jq '[env] | .[0]'"
        )
        assert (ran.text, site.seen[0].headers["Authorization"]) == ("owner/name\n2\n2\n", f"token {SECRET}")
        assert [seen.method for seen in site.seen] == ["GET"]
    finally:
        site.close()


def github_handler(base):
    class GitHub(base):  # type: ignore[misc,valid-type] # made by a fixture
        def say_repos(self, rest):
            self.reply(json.dumps({"full_name": rest}).encode(), Content_Type="application/json")

    return GitHub
