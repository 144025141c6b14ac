"""What is found in the workspace that scripts must not reach: files of secrets, sockets of the host's programs."""

from __future__ import annotations

import os
import socket

from sandboxmcp.sandbox.workspace.masked_paths import Covered, Secret, covered, sockets_of_host

PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\n"


def test_files_of_secrets_and_sockets_are_found_and_look_alikes_are_not(tmp_path):
    key, certificate = "-----BEGIN OPENSSH PRIVATE KEY-----\n", "-----BEGIN CERTIFICATE-----\n"
    files = {".env": "", ".env.local": "", "sub/.npmrc": "", "sub/id_rsa": "", "tls/own.pem": key, "service.key": key}
    files |= {"credentials.json": "{}", ".netrc": ""}
    others = {"id_map.py": "", "id_rsa.pub": "ssh-rsa", "tls/bundle.pem": certificate, "environment": "", "env.py": ""}
    others |= {".env.example": "", ".npmrc.dist": "", "example.env": ""}
    for name, text in {**files, **others}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        assert covered(tmp_path) == Covered(("s",), tuple(Secret(name, name) for name in sorted(files)))


def test_links_with_a_secrets_name_and_hard_links_lead_to_secrets_of_other_names(tmp_path):
    outside = tmp_path / "outside"
    workspace = tmp_path / "workspace"
    for folder in (outside, workspace / "deploy"):
        folder.mkdir(parents=True)
    for name in ("deploy/production", "deploy/.netrc", "plain"):
        (workspace / name).write_text("x")
    (outside / "far").write_text("x")
    (workspace / ".env").symlink_to("deploy/production")
    (workspace / ".env.far").symlink_to(outside / "far")
    (workspace / "bundle.pem").symlink_to("plain")
    (workspace / "same-as-netrc").hardlink_to(workspace / "deploy/.netrc")
    found = (Secret("deploy/.netrc", "deploy/.netrc"), Secret("deploy/production", ".env"))
    assert covered(workspace).secrets == (*found, Secret("same-as-netrc", "deploy/.netrc"))


def test_a_key_of_one_word_is_one_and_other_files_of_its_ending_are_not(tmp_path):
    files = {
        "config/credentials/production.key": "0123456789abcdef" * 2,
        "talk.key": "PK\x03\x04 slides",
        "deploy_rsa": PEM,
        "hash_rsa": "no",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [one.path for one in covered(tmp_path).secrets] == ["config/credentials/production.key", "deploy_rsa"]


def test_the_look_is_bounded_and_takes_what_is_near_the_top_first(tmp_path):
    (tmp_path / "deep/er").mkdir(parents=True)
    for name in (".env", "deep/er/.env"):
        (tmp_path / name).touch()
    assert covered(tmp_path, most_entries=2).secrets == (Secret(".env", ".env"),)


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


def test_dull_folders_are_looked_into_at_last(tmp_path):
    for name in ("__pycache__/conf/.env", ".git/objects/ab/.env", "late/.env"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    found = [one.path for one in covered(tmp_path, most_entries=5).secrets]
    assert found == [".git/objects/ab/.env", "__pycache__/conf/.env", "late/.env"]


def test_a_folder_that_cannot_be_looked_into_is_told(tmp_path):
    deep = tmp_path
    for _ in range(12):
        deep /= "d" * 200
    deep.mkdir(parents=True)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    unseen = covered(tmp_path).unseen
    closed.chmod(0o700)
    assert [len(path) > 1_900 for path in unseen if path != str(closed)] == [True]
    assert (str(closed) in unseen) == (os.geteuid() != 0)
