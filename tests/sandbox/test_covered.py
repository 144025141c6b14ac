"""What of the workspace scripts cannot reach: files of secrets, sockets of the host's programs."""

from __future__ import annotations

import socket

from sandboxmcp.sandbox.covered import Covered, covered, sockets_of_host


def test_files_of_secrets_and_sockets_are_found_and_look_alikes_are_not(tmp_path):
    key, certificate = "-----BEGIN OPENSSH PRIVATE KEY-----\n", "-----BEGIN CERTIFICATE-----\n"
    files = {".env": "", ".env.local": "", "sub/.npmrc": "", "sub/id_rsa": "", "tls/own.pem": key, "service.key": key}
    files |= {"credentials.json": "{}", ".netrc": ""}
    others = {"id_map.py": "", "id_rsa.pub": "ssh-rsa", "tls/bundle.pem": certificate, "environment": "", "env.py": ""}
    for name, text in {**files, **others}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        assert covered(tmp_path) == Covered(("s",), tuple(sorted(files)))


def test_the_look_is_bounded_and_takes_what_is_near_the_top_first(tmp_path):
    (tmp_path / "deep/er").mkdir(parents=True)
    for name in (".env", "deep/er/.env"):
        (tmp_path / name).touch()
    assert covered(tmp_path, most_entries=2).secrets == (".env",)


def test_a_file_of_secrets_is_empty_inside_and_untouched_outside(make_inside):
    own = make_inside()
    (own.workspace / "conf").mkdir()
    for name in (".env", "conf/id_ed25519"):
        (own.workspace / name).write_text("TOKEN=secret\n")
    ran = own.run("cat .env conf/id_ed25519; mv conf c2; cat c2/id_ed25519; rm -f .env; echo x > .env; ls -a", "shell")
    assert ("secret" in ran.text, ".env" in ran.text.split(), ran.stderr.decode().count("Permission denied")) == (False, True, 0)
    assert [(own.workspace / name).read_text() for name in (".env", "c2/id_ed25519")] == ["TOKEN=secret\n"] * 2


def test_a_file_of_secrets_that_the_host_replaces_is_empty_again_for_the_next_script(make_inside):
    own = make_inside()
    for name in (".env", "new"):
        (own.workspace / name).write_text("TOKEN=secret\n")
    assert own.run("cat .env", "shell").text == ""
    (own.workspace / "new").rename(own.workspace / ".env")
    ran = own.run("cat .env; cp /dev/null .env", "shell")
    assert (ran.text, (own.workspace / ".env").read_text()) == ("", "TOKEN=secret\n")


def test_sockets_of_the_host_are_found_by_the_kernels_own_list(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    names = [str(project / "a b.sock"), "relative.sock", str(elsewhere / "c.sock"), "\0abstract"]
    held = [socket.socket(socket.AF_UNIX) for _ in names]
    for one, name in zip(held, names, strict=True):
        one.bind(name)
    (project / "plain").write_text("")
    assert sockets_of_host(project) == {str(project / "a b.sock"), str(project / "relative.sock")}
    for one in held:
        one.close()
    assert (sockets_of_host(project), sockets_of_host(project, tmp_path / "missing")) == (frozenset(), frozenset())
