"""A credential is masked as well where its key stands apart from it: in tables, in pairs, and in the line before."""

import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxmcp.core.resources import data_folder
from sandboxmcp.policy.packs.pack import load_pack
from sandboxmcp.policy.secrets.redactor import Redactor, example_text

REDACTOR = Redactor(load_pack(data_folder("policies") / "secrets.toml").secrets)
FIRST, SECOND = "hunter2Xk9pQ4", "tR0ub4dor&3x"
LONG = example_text("<32h>").decode()
TOKEN = example_text("ghp_<36>").decode()

LAYOUTS = {
    "csv": f"name,password\nada,{FIRST}\ngrace,{SECOND}\n",
    "csv-quoted": f'"user","token","note"\n"ada","{LONG}","x"\n',
    "csv-semicolon": f"id;api_key;created\n1;{LONG};2024-01-01\n",
    "tsv": f"name\tpassword\nada\t{FIRST}\n",
    "markdown-table": f"| user | token |\n|------|-------|\n| ada | {LONG} |\n",
    "mysql": f"+------+---------------+\n| user | password      |\n+------+---------------+\n| ada  | {FIRST} |\n| bob  | {SECOND}  |\n+------+---------------+\n",
    "psql": f" user | password      \n------+---------------\n ada  | {FIRST}\n bob  | {SECOND}\n(2 rows)\n",
    "psql-expanded": f"-[ RECORD 1 ]-----------\nuser     | ada\npassword | {FIRST}\n",
    "column-t": f"user   password       note\nada    {FIRST}  x\nbob    {SECOND}   y\n",
    "sqlite-box": f"┌──────┬───────────────┐\n│ user │   password    │\n├──────┼───────────────┤\n│ ada  │ {FIRST} │\n└──────┴───────────────┘\n",
    "sqlite-column": f"user  password     \n----  -------------\nada   {FIRST}\n",
    "sqlite-line": f"    user = ada\npassword = {FIRST}\n",
    "rich-table": f"┃ user ┃ token ┃\n┡━━━━━━╇━━━━━━━┩\n│ ada  │ {LONG} │\n",
    "pandas": f"   name       password\n0   ada  {FIRST}\n1   bob   {SECOND}\n",
    "k8s-env": f"    env:\n    - name: DB_PASSWORD\n      value: {FIRST}\n",
    "k8s-env-q": f'    - name: DB_PASSWORD\n      value: "{FIRST}"\n',
    "yaml-block": f"password: |\n  {FIRST}\nuser: ada\n",
    "yaml-fold": f"api_key: >-\n  {LONG}\nuser: ada\n",
    "yaml-next-line": f"password:\n  {FIRST}\n",
    "yaml-list": f"tokens:\n  - {LONG}\n",
    "pprint": f"{{'password':\n     '{FIRST}',\n 'user': 'ada'}}",
    "pprint-2": f"{{'client_secret': 'abc'\n                  '{FIRST}'}}",
    "var_dump": f'array(1) {{\n  ["password"]=>\n  string(13) "{FIRST}"\n}}\n',
    "var_export": f"array (\n  'password' => '{FIRST}',\n)",
    "print_r": f"Array\n(\n    [password] => {FIRST}\n)\n",
    "setting": f'<setting name="password" serializeAs="String">\n  <value>{FIRST}</value>\n</setting>',
    "setting1": f'<setting name="password"><value>{FIRST}</value></setting>',
    "add": f'<add key="Password" value="{FIRST}"/>',
    "add-lines": f'<add\n  key="Password"\n  value="{FIRST}"/>',
    "Password": f"<Password>{FIRST}</Password>",
    "xml-lines": f"<password>\n  {FIRST}\n</password>",
    "plist": f"<key>password</key>\n<string>{FIRST}</string>",
    "plist1": f"<key>ApiKey</key><string>{LONG}</string>",
    "properties": f"spring.datasource.password={FIRST}",
    "properties-sp": f"spring.datasource.password = {FIRST}",
    "properties-blank": f"db.password {FIRST}",
    "ini": f"[db]\npassword   =   {FIRST}\n",
    "toml-multi": f'password = """\n{FIRST}"""\n',
    "toml-multi-s": f"secret = '''\n{FIRST}\n'''\n",
    "json-pair": f'{{"name": "DB_PASSWORD", "value": "{FIRST}"}}',
    "json-pair-lines": f'{{\n  "name": "DB_PASSWORD",\n  "value": "{FIRST}"\n}}',
    "json-pair-rev": f'{{\n  "value": "{FIRST}",\n  "name": "DB_PASSWORD"\n}}',
    "json-pair-Key": f'[{{"Key": "db_password", "Value": "{FIRST}"}}]',
    "json-pair-mid": f'{{\n  "name": "DB_PASSWORD",\n  "type": "string",\n  "value": "{FIRST}"\n}}',
    "json-key-next": f'"password":\n   "{FIRST}"',
    "docker-env": f'            "Env": [\n                "PATH=/usr/bin",\n                "DB_PASSWORD={FIRST}",\n                "X_TOKEN={LONG}"\n',
    "kubectl-describe": f"    Environment:\n      DB_PASSWORD:  {FIRST}\n      API_TOKEN:    {LONG}\n",
    "env-0": f"PATH=/bin\0DB_PASSWORD={FIRST}\0HOME=/root\0",
    "declare-x": f'declare -x DB_PASSWORD="{FIRST}"',
    "export": f'export DB_PASSWORD="{FIRST}"',
    "fish": f"set -x DB_PASSWORD {FIRST}",
    "fish-gx": f"set -gx API_KEY '{LONG}'",
    "setenv": f"setenv DB_PASSWORD {FIRST}",
    "powershell": f'$env:DB_PASSWORD = "{FIRST}"',
    "powershell-table": f"Name                           Value\n----                           -----\nDB_PASSWORD                    {FIRST}\n",
    "windows-set": f"DB_PASSWORD={FIRST}\r\nPATH=C:\\x\r\n",
    "windows-setq": f'set "DB_PASSWORD={FIRST}"',
    "setx": f"setx DB_PASSWORD {FIRST}",
    "az-table": f"Name    PasswordHash  Password\n------  ------------  -------------\nada     x             {FIRST}\n",
    "az-sp": f"AppId                                 DisplayName    Password                                  Tenant\n------------------------------------  -------------  ----------------------------------------  ------\n11111111-2222-3333-4444-555555555555  azure-cli      {FIRST}abc~{LONG}                  x\n",
    "aws-table": f"|  SecretString  |  {FIRST}  |\n",
    "aws-table2": f"-------------------\n|  GetSecretValue |\n+------+----------+\n| Name | SecretString |\n+------+----------+\n| x | {FIRST} |\n",
    "terraform-add": f'  + password                 = "{FIRST}"\n',
    "terraform-out": f'db_password = "{FIRST}"\n',
    "terraform-heredoc": f"password = <<-EOT\n    {FIRST}\nEOT\n",
    "github-actions": f"        with:\n          name: token\n          value: {FIRST}\n",
    "compose": f'environment:\n  - DB_PASSWORD={FIRST}\n  - "API_TOKEN={LONG}"\n',
    "compose-map": f"environment:\n  DB_PASSWORD: {FIRST}\n",
    "helm-set": f"--set auth.password={FIRST}",
    "dsn": f'dsn = "host=x password={FIRST} user=ada"',
    "ruby": f'{{:password=>"{FIRST}", :x=>1}}',
    "ruby2": f'{{password: "{FIRST}"}}',
    "go": f"{{Password:{FIRST} User:ada}}",
    "rust": f'Config {{ password: "{FIRST}", x: 1 }}',
    "rust-pretty": f'Config {{\n    password: Some(\n        "{FIRST}",\n    ),\n}}',
    "rust-some": f'Config {{ password: Some("{FIRST}") }}',
    "java": f"User(name=ada, password={FIRST})",
    "jq-entries": f'{{\n  "key": "password",\n  "value": "{FIRST}"\n}}',
    "json-array-next": f'"tokens": [\n    "{LONG}"\n  ]',
    "bash-array": f'declare -A cfg=([password]="{FIRST}" )',
    "heroku": f"DB_PASSWORD:      {FIRST}\n",
    "docker-e": f"docker run -e DB_PASSWORD={FIRST} x",
    "curl-form": f"curl -d 'password={FIRST}&x=1'",
    "powershell-list": f"Password : {FIRST}\n",
    "yaml-quoted-key": f'"password": {FIRST}',
    "dotted-next": f"  password=\\\n{FIRST}\n",
}
KEPT = {
    "code": "def login(user, password):\n    token = next(tokens)\n    return user, password, token2id\n",
    "annotations": "password: str\ntoken: bytes\n\nclass Base64Token:\n    secret: SecretStr\n",
    "documentation": "password:\n  required: true\n  description: at least 8 letters\n",
    "schema": '{"name": "password", "in": "query", "schema": {"type": "string"}, "value": null}',
    "placeholder": "- name: TOKEN\n  value: ${{ secrets.TOKEN2 }}\n- name: other\n  value: harmless2harmless\n",
    "other-pair": '{"name": "password"}, {"name": "region", "value": "eu-central-12ab"}',
    "markdown": "| token | meaning |\n|---|---|\n| base64 | RFC4648 |\n| utf8_name_2 | sha256 |\n",
    "kinds-of-tokens": "Token    Type\nidentifier2    name\nNUMBER_LITERAL_2    number\n",
    "sentences": "user, password, realm2\nthe token  is kept\n",
    "messages": "password:\n  Please choose a password of 12 letters\n",
    "empty": "PASSWORD=\nUSER2NAME=ada12345\n",
    "block-of-text": "secret: |\n  This is a text of two lines\n  about secrets\n",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_credential_is_masked_in_every_layout(layout: str) -> None:
    text = LAYOUTS[layout]
    masked = REDACTOR.text(text)
    assert ([one for one in (FIRST, SECOND, LONG) if one in masked], masked.count("\n")) == ([], text.count("\n"))


@pytest.mark.parametrize("kept", KEPT)
def test_what_only_speaks_of_credentials_is_kept(kept: str) -> None:
    assert REDACTOR.text(KEPT[kept]) == KEPT[kept]


@pytest.mark.parametrize("hidden", ["\\N{ZERO WIDTH SPACE}", "\\N{SOFT HYPHEN}", "\r"])
def test_a_token_with_a_named_escape_or_a_return_in_it_is_masked(hidden: str) -> None:
    assert TOKEN[12:] not in REDACTOR.text(f"a {TOKEN[:12]}{hidden}{TOKEN[12:]} b")


HEADINGS: dict[str, Callable[[int], str]] = {
    "csv": lambda number: f"user{number},aB{number:06}xYz\n",
    "bars": lambda number: f"| user{number} | aB{number:06}xYz |\n",
    "blanks": lambda number: f"user{number:07}   aB{number:06}xYz\n",
}
FIRST_LINES = {"csv": "name,password\n", "bars": "| name | password |\n|---|---|\n", "blanks": "name          password\n"}


@pytest.mark.parametrize("kind", HEADINGS)
def test_a_table_longer_than_a_block_is_masked_to_its_end(kind: str) -> None:
    """Four megabytes: its heading is far out of sight in the last ones."""
    rows = "".join(map(HEADINGS[kind], range(150_000)))
    masked = REDACTOR.text(f"before\n{FIRST_LINES[kind]}{rows}\nafter aB000001xYz\n")
    assert (masked.count("xYz"), masked.count("[redacted:named-secret]")) == (1, 150_000)


@given(st.lists(st.sampled_from(sorted(LAYOUTS)), min_size=1, max_size=6), st.lists(st.integers(0, 1_000), max_size=8))
@settings(max_examples=200, deadline=None)
def test_pieces_of_a_stream_do_not_matter(layouts: list[str], cuts: list[int]) -> None:
    data = "\n\n".join(LAYOUTS[layout] for layout in layouts).encode()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    parts = [data[start:end] for start, end in itertools.pairwise(places)]
    assert b"".join(REDACTOR(parts)) == REDACTOR.masked(data)


@pytest.mark.parametrize("shift", range(-60, 20, 5))
def test_a_value_below_its_key_is_masked_across_the_end_of_a_block(shift: int) -> None:
    block = 1 << 20
    layout = f"    - name: DB_PASSWORD\n      value: {FIRST}\n"
    data = ("x y\n" * block)[: block + shift - 1] + "\n" + layout + ("x y\n" * block)[:block]
    draw = random.Random(shift)
    places = sorted({0, len(data), *(draw.randrange(len(data)) for _ in range(20))})
    parts = [data[start:end].encode() for start, end in itertools.pairwise(places)]
    assert FIRST.encode() not in b"".join(REDACTOR(parts))
