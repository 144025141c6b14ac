"""Masked copies of files of secrets: keys stay, values go, and neither length nor line ends change."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandboxmcp.core.resources import data_folder
from sandboxmcp.policy.packs.pack import load_pack
from sandboxmcp.policy.secrets.credential_files import masked_copy
from sandboxmcp.policy.secrets.redactor import Redactor, example_text
from sandboxmcp.sandbox.workspace.secret_names import kind_of
from tests.measuring import MOST, growth, thread_seconds

REDACTOR = Redactor(load_pack(data_folder("policies") / "secrets.toml").secrets)
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabcDEF123456==\n-----END RSA PRIVATE KEY-----\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIDpublic\n-----END CERTIFICATE-----\n"


@dataclass(frozen=True)
class Case:
    name: str
    text: str
    gone: str
    """Words that must not be seen."""
    kept: str
    """Words that must."""


CASES = [
    Case(
        ".mcp.json",
        json.dumps(
            {"env": {"OPENAI_KEY": "plain1", "GITHUB_PAT": "plain2", "MY_PW": "plain3", "KEY_FILE": "path4"}, "key": "name5"}
        ),
        "plain1 plain2 plain3",
        "OPENAI_KEY GITHUB_PAT MY_PW path4 name5",
    ),
    Case(
        "mcp.json",
        json.dumps(
            {
                "args": ["--api-key", "plain-one", "--token=plain2", "-e", "X_SECRET=plain3", "--port", "80"],
                "url": "u?sig=1&token=plain4",
            }
        ),
        "plain-one plain2 plain3 plain4 one",
        "args --api-key --token= X_SECRET= --port sig=1",
    ),
    Case(
        "mcp.json",
        json.dumps({"header": "Authorization: Bearer abc def", "text": "The token is here"}),
        "Bearer abc def",
        "Authorization token here",
    ),
    Case(
        "compose.override.yml",
        'x: {password: two words, y: 1}\n- "DB_PASSWORD=abcdef"\n',
        "two words abcdef",
        "password y: 1 DB_PASSWORD",
    ),
    Case(
        "vpn.ovpn",
        "client\n<auth-user-pass>\nme\npw-pw\n</auth-user-pass>\n<key>\nabc\n</key>\n",
        "me pw abc",
        "client auth-user-pass key",
    ),
    Case(
        ".env",
        "# the database\nPORT=3000\nexport KEY=\"multi\nFAKE=line\" # why\nOTHER='it is'\n",
        "3000 multi line it",
        "PORT export KEY why OTHER database",
    ),
    Case(
        ".env",
        "#OLD_PASSWORD=hunter22\nA=one two # three\nB= \nC=x\\\nD=joined\n",
        "hunter22 one two three joined",
        "OLD_PASSWORD A B C",
    ),
    Case(
        ".env",
        "TLS=-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ==\n-----END PRIVATE KEY-----\nkqhkiG9w0cAQ=\nLAST=1\n",
        "MIIEvQIBADANBg kqhkiG9w0BAQ kqhkiG9w0cAQ",
        "TLS LAST",
    ),
    Case(
        ".env",
        'KEY="never closed\nNEXT=hidden-too\n',
        "never closed hidden",
        "KEY",
    ),
    Case(
        ".env.local",
        "\ufeffFIRST: yaml-like\nlonesecretword\nset -a\n",
        "yaml like lonesecretword",
        "FIRST",
    ),
    Case(
        "deploy/prod.env",
        "PASSWORD=pw-pw-pw\r\nUSER=me-me\r\n",
        "pw me",
        "PASSWORD USER",
    ),
    Case(
        ".npmrc",
        "registry=https://npm.example.org/\n//npm.example.org/:_authToken=abc-def\n_auth = dXNlcjpwYXNz\n; _password=oldone\n",
        "abc def dXNlcjpwYXNz oldone",
        "registry https npm.example.org _authToken _auth",
    ),
    Case(
        ".pypirc",
        "[distutils]\nindex-servers = pypi\n[pypi]\nusername = __token__\npassword = pypi-short\n",
        "short",
        "index servers username __token__",
    ),
    Case(
        "pip.conf",
        "[global]\nindex-url = https://me:s3cretpw@pypi.example.org/simple\n",
        "s3cretpw",
        "index url pypi.example.org",
    ),
    Case(
        ".netrc",
        'machine a.example.org login ada password pa:ss # x\nmachine b login\n  eve\npassword "two words"\n'
        "macdef init\n secretcommand\n\ndefault login anonymous password me@x\n",
        "pa ss two words secretcommand me",
        "machine a.example.org login ada eve macdef default anonymous",
    ),
    Case(
        ".git-credentials",
        "https://ada:t0k-en@git.example.org\nhttps://onlytoken@h.example\nnonsense\n",
        "ada t0k onlytoken nonsense",
        "https git.example.org h.example",
    ),
    Case(
        ".pgpass",
        "db.example.org:5432:shop:ada:hun\\:ter:22\nbroken-line\n",
        "hun ter 22 broken",
        "db.example.org 5432 shop ada",
    ),
    Case(
        ".htpasswd",
        "ada:$apr1$abcdefgh$xyz\n",
        "apr1 abcdefgh xyz",
        "ada",
    ),
    Case(
        ".aws/credentials",
        "[default]\naws_access_key_id = AKIAXYZ\naws_secret_access_key = short/secret\n# note\n",
        "AKIAXYZ short secret/",
        "default aws_access_key_id aws_secret_access_key note",
    ),
    Case(
        "credentials.toml",
        "[registry]\ntoken = \"cio-secret\"\nnumber = 4711\nmore = '''\nlines = here\n'''\nlist = [\"one-a\", \"two-b\"]\n",
        "cio secret 4711 here one two",
        "registry token number more list",
    ),
    Case(
        "secrets.yml",
        "production:\n  secret_key_base: abcdef\n  block: |\n    inside: blk\n  items:\n    - first-item\n    - name: second\n",
        "abcdef inside: blk first second",
        "production secret_key_base items name",
    ),
    Case(
        "credentials.json",
        json.dumps({"type": "user", "list": ["one-a", {"deep": "two-b"}], "pin": 4711, "on": True}, indent=1),
        "user one two 4711",
        "type list deep pin true",
    ),
    Case(
        ".docker/config.json",
        json.dumps({"auths": {"r.example.org": {"auth": "dXNlcjpwYXNz"}}, "credsStore": "pass"}),
        "dXNlcjpwYXNz",
        "auths r.example.org credsStore",
    ),
    Case(
        "auth.json",
        json.dumps({"github-oauth": {"github.com": "gh-short"}, "title": "Sign in"}),
        "short",
        "github.com title Sign",
    ),
    Case(
        "appsettings.Production.json",
        json.dumps({"ConnectionStrings": {"Db": "Server=x;Password=pw-pw"}, "Logging": {"Level": "Debug"}}),
        "pw Server",
        "ConnectionStrings Db Logging Level Debug",
    ),
    Case(
        ".mcp.json",
        json.dumps({"mcpServers": {"a": {"command": "npx", "env": {"API_KEY": "plain-value", "MODE": "fast"}}}}),
        "plain value",
        "mcpServers npx API_KEY MODE fast",
    ),
    Case(
        "terraform.tfvars",
        'region = "eu-west"\ndb_password = "hunter22"\npeople = {\n  secret = "deep-er"\n}\napi_key = <<EOF\nmulti-line\nEOF\n',
        "hunter22 deep er multi line",
        "region eu west db_password people secret api_key",
    ),
    Case(
        "prod.tfstate",
        json.dumps({"outputs": {"pw": {"value": "hunter22"}}}),
        "hunter22",
        "outputs pw value",
    ),
    Case(
        "kubeconfig",
        "users:\n- name: ada\n  user:\n    client-key-data: LS0tLS1\n    token: abc-def\n    password: pa ss\n",
        "LS0tLS1 abc def pa ss",
        "users name ada client-key-data token",
    ),
    Case(
        "k8s/db-secret.yaml",
        "kind: Secret\nmetadata:\n  name: db\ndata:\n  anything: aHVudGVyMjI=\n",
        "aHVudGVyMjI",
        "kind Secret metadata name db anything",
    ),
    Case(
        "database.yml",
        "production:\n  host: db.example.org\n  password: hunter22\n  url: postgres://ada:pw-pw-pw@db/x\n",
        "hunter22 pw",
        "production host db.example.org ada",
    ),
    Case(
        ".m2/settings.xml",
        "<server><id>a</id><username>ada</username>\n"
        "<password>hunter22</password></server><privateKey><![CDATA[pk<x]]></privateKey>",
        "hunter22 pk",
        "server id username ada",
    ),
    Case(
        "NuGet.Config",
        '<add key="Username" value="ada" />\n<add key="ClearTextPassword" value="hunter22" />',
        "hunter22",
        "Username ada ClearTextPassword",
    ),
    Case(
        "wp-config.php",
        "<?php\ndefine( 'DB_NAME', 'shop' );\ndefine( 'DB_PASSWORD', 'hunter22' );\n"
        "define('AUTH_KEY', 'a b c!');\n$table_prefix = 'wp_';\n",
        "hunter22 b c!",
        "DB_NAME shop DB_PASSWORD AUTH_KEY wp_",
    ),
    Case(
        "gradle.properties",
        "org.gradle.jvmargs=-Xmx2g\nstorePassword=hunter22\nsigning.keyPassword: pw-pw\n",
        "hunter22 pw",
        "org.gradle.jvmargs Xmx2g storePassword signing.keyPassword",
    ),
    Case(
        ".git/config",
        '[remote "origin"]\n\turl = https://ada:t0k-en-x@h.example/r.git\n[http]\n\textraheader = AUTHORIZATION: basic abcdef\n',
        "t0k basic abcdef",
        "remote origin url h.example extraheader",
    ),
    Case(
        "tls/server.pem",
        PEM + CERTIFICATE,
        "MIIEowIBAAKCAQEA abcDEF123456",
        "BEGIN RSA MIIDpublic CERTIFICATE",
    ),
    Case(
        "id_rsa",
        "no key that one could tell\n",
        "no key that",
        "",
    ),
    Case(
        "key.ppk",
        "PuTTY-User-Key-File-3: ssh-rsa\nComment: me\nPublic-Lines: 1\nAAAA\nPrivate-Lines: 1\nBBBB\nPrivate-MAC: cccc\n",
        "BBBB cccc",
        "PuTTY Comment AAAA",
    ),
    Case(
        "store.p12",
        "binary\x00store",
        "binary store",
        "",
    ),
    Case(
        ".env",
        "A=wide\n".encode("utf-16").decode("latin-1"),
        "w i d e",
        "",
    ),
    Case(
        "config/master.key",
        "0123456789abcdef0123456789abcdef",
        "0123456789abcdef",
        "",
    ),
    Case(
        ".curlrc",
        'user = "ada:hunter22"\n',
        "ada hunter22",
        "user",
    ),
    Case(
        "secrets/db_password.txt",
        "hunter22\n",
        "hunter22",
        "",
    ),
]


def masked(name: str, text: str) -> bytes:
    return masked_copy(name, text.encode("latin-1" if "\xff" in text else "utf-8"), REDACTOR)


def words(text: str) -> set[str]:
    return set(re.split(r"[\s=:\"'\[\]{}()<>,;/$@!*\\-]+", text)) | set(text.split())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{CASES.index(case)}")
def test_keys_stay_and_values_go(case: Case) -> None:
    shown = masked(case.name, case.text).decode("latin-1")
    seen = words(shown)
    assert [word for word in case.gone.split() if word in seen or (len(word) >= 6 and word in shown)] == []
    assert [word for word in case.kept.split() if word not in shown] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{CASES.index(case)}")
def test_length_and_line_ends_stay(case: Case) -> None:
    data = case.text.encode("latin-1" if "\xff" in case.text else "utf-8")
    assert_same_form(data, masked_copy(case.name, data, REDACTOR))


def assert_same_form(data: bytes, shown: bytes) -> None:
    ends = [at for at, code in enumerate(data) if code in b"\n\r"]
    assert (len(shown), [at for at, code in enumerate(shown) if code in b"\n\r"]) == (len(data), ends)


@pytest.mark.parametrize("name", ["credentials.json", "prod.tfstate"])
def test_masked_json_is_json(name: str) -> None:
    text = json.dumps({"a": [1, -2.5, None, True, 'ä\n"x'], "b": {"c": 0}}, ensure_ascii=False)
    assert json.loads(masked(name, text)) == {"a": [1, -1.1, None, True, "*" * 7], "b": {"c": 1}}


def test_masked_toml_is_toml() -> None:
    text = "a = \"x\"\nb = 12\nc = 1979-05-27\nd = true\ne = ['one', 'two']\n[t]\nf = '''\nx\n'''\n"
    assert list(tomllib.loads(masked("secrets.toml", text).decode())) == ["a", "b", "c", "d", "e", "t"]


ORDINARY = {
    ".npmrc": "save-exact=true\n//npm.example.org/:_authToken=${NPM_TOKEN}\n",
    "appsettings.json": '{"Logging": {"LogLevel": {"Default": "Information"}}, "Password": {"RequiredLength": 8}}',
    "gradle.properties": "org.gradle.parallel=true\nandroid.useAndroidX=true\n",
    "database.yml": "test:\n  adapter: sqlite3\n  password: <%= ENV['DB'] %>\n  pool: 5\n",
    "terraform.tfvars": 'region = "eu"\nmax_token = 4096\ntoken_url = "https://example.org/token"\n',
    "settings.xml": "<settings><server><password>${env.PW}</password></server></settings>",
    ".git/config": "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@example.org:a/b.git\n",
    ".mcp.json": '{"mcpServers": {"a": {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "${TOKEN}"}}}}',
    ".yarnrc.yml": "nodeLinker: node-modules\nnpmAuthToken: ${NPM_TOKEN}\n",
}  # fmt: skip


@pytest.mark.parametrize("name", ORDINARY)
def test_settings_without_a_credential_stay_as_they_are(name: str) -> None:
    assert masked(name, ORDINARY[name]) == ORDINARY[name].encode()


def test_known_shapes_are_masked_beside_what_the_file_says() -> None:
    token = example_text("ghp_<36>")
    assert masked_copy(".npmrc", b"# was " + token + b"\n", REDACTOR) == b"# was " + b"*" * len(token) + b"\n"


NAMES = sorted({case.name for case in CASES})


@given(
    st.sampled_from(NAMES),
    st.binary(max_size=300) | st.text(alphabet="aKEY=:'\"\\\n \t#-{}[]<>|&!`$%@,;/.0é", max_size=200).map(str.encode),
)
@example(".env", b"=\n")
@example("credentials.json", b'"\\')
def test_any_bytes_keep_their_length_and_lines(name: str, data: bytes) -> None:
    assert_same_form(data, masked_copy(name, data, REDACTOR))


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z][A-Z0-9_]{0,12}", fullmatch=True),
        st.from_regex(r"[a-z0-9!#$%&()*+,./:;<?@^_|~-][a-z0-9!#$%&()*+,./:;<=>?@^_|~ -]{5,30}", fullmatch=True),
    ),
    st.sampled_from(["", '"', "'"]),
)
def test_no_value_of_an_env_file_survives(values: dict[str, str], quote: str) -> None:
    text = "".join(f"{key}={quote}{value}{quote}\n" for key, value in values.items())
    shown = masked(".env", text).decode()
    assert [key for key, value in values.items() if value.strip() in shown and len(value.strip()) >= 6] == []
    assert re.findall(r"^(\w+)=", shown, re.M) == list(values)


HOSTILE = [
    "a",
    'A="',
    "A='x\\\n",
    "#",
    "-",
    "- ",
    "a: |\n ",
    '"\\',
    "{",
    "[",
    '{"a":',
    "<a ",
    "<a><![CDATA[",
    "password=",
    "key=' ",
    "machine ",
    " ",
    "\t=",
    "a=b\\\n",
    "x:",
    "//",
    ",",
    "-----BEGIN PRIVATE KEY-----",
    '"""',
    "ab    ",
    "password:\n  ",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_readers_are_linear(name: str) -> None:
    """The steps of a whole table together: a quadratic reader of one of them would be a hundred times slower on the longer ones."""

    def seconds(size: int) -> float:
        pieces = [(piece * (size // len(piece)))[:size].encode() for piece in HOSTILE]
        return thread_seconds(lambda: [masked_copy(name, piece) for piece in pieces])

    assert growth(seconds, smallest=8_000, largest=64_000) <= MOST


TEMPLATES = [
    ".env.example",
    ".env.local.sample",
    ".npmrc.dist",
    ".env.template",
    "config.example",
    "example.env",
    ".env-example",
    "secrets.example.yml",
    ".env.dist",
]


def test_templates_are_ordinary_files() -> None:
    assert [name for name in TEMPLATES if kind_of(name) is not None] == []
    assert [name for name in (".env.example.local", ".env.sample.bak", ".ENV", "sub/.Env.Local") if kind_of(name) is None] == []
