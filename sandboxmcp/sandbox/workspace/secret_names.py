"""File names that by convention hold credentials, as data: for each, how such a file is read and how much of it is a secret.

Three degrees. `all`: every value in it counts as a secret (`.env`). `some`: an ordinary file of settings that may hold a credential
(`.npmrc`, `appsettings.json`); only values whose key says so count, and a file without any stays as it is. `key`: it is one only if
it is a private key; the content decides. Templates (`.env.example`) are ordinary files. Names are compared in small letters.
Sources: the manuals of the programs named beside each group; github/gitignore; the file names of gitleaks' and git-secrets' rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Reader = Literal["env", "lines", "toml", "yaml", "json", "xml", "netrc", "urls", "fields", "key", "whole"]
Degree = Literal["all", "some", "key"]


@dataclass(frozen=True, slots=True)
class SecretKind:
    """How the content of a file is read, and how much of it is a secret."""

    reader: Reader
    degree: Degree = "all"
    kept_fields: int = 0
    """For `fields`: how many fields, separated by colons, come before the secret."""


def kind_of(path: str) -> SecretKind | None:
    """What a file's path says of the secrets in it; None: it is an ordinary file, or a template of a file of secrets."""
    folder, _, name = path.rpartition("/")
    name = name.lower()
    if (known := _EXACT.get(name)) is None:
        ending = name.rpartition(".")[2]
        known = _prefixed(name) or _ENDINGS.get(ending) or _patterned(name, ending)
    if name == "config" and "/.git/" in f"/{path}":
        return _SOME_LINES
    if folder and (placed := _placed(folder.rpartition("/")[2].lower(), name)) is not None:
        known = placed
    return None if known is None or _TEMPLATE.search(name) else known


def _prefixed(name: str) -> SecretKind | None:
    if name.startswith(".env") or _ENV_OF_A_STAGE.fullmatch(name):
        return _ENV
    if not name.startswith(_PREFIXES):
        return None
    return _SURE_KEY if _SSH_KEY.fullmatch(name) else _KEY if name.startswith("id_") else None


def _patterned(name: str, ending: str) -> SecretKind | None:
    if ending == name:
        return _KEY if name.endswith(_KEY_ALGORITHMS) else None
    for pattern, kind in _PATTERNS.get(ending, ()):
        if pattern.fullmatch(name):
            return kind
    return None


def _placed(folder: str, name: str) -> SecretKind | None:
    if folder in ("secrets", ".secrets") and ("." not in name or name.endswith((".txt", ".secret"))):
        return _WHOLE  # the form in which Docker's and Podman's secrets lie in a project
    return _ENV if folder in (".env.d", ".envs") else _IN_FOLDERS.get((folder, name))


_ENV = SecretKind("env")
_LINES, _SOME_LINES = SecretKind("lines"), SecretKind("lines", "some")
_TOML, _SOME_TOML = SecretKind("toml"), SecretKind("toml", "some")
_YAML, _SOME_YAML = SecretKind("yaml"), SecretKind("yaml", "some")
_JSON, _SOME_JSON = SecretKind("json"), SecretKind("json", "some")
_SOME_XML = SecretKind("xml", "some")
_WHOLE = SecretKind("whole")
_SURE_KEY, _KEY = SecretKind("key"), SecretKind("key", "key")

_TEMPLATE = re.compile(
    r"[._-](?:example|sample|template|dist)s?$"
    r"|(?:^|[._-])(?:example|sample|template)s?\.(?:env|json|ya?ml|toml|ini|properties|tfvars)$"
)
"""`.env.example.local` is none: it overrides a template with real values."""
_PREFIXES = ("id_",)
_ENV_OF_A_STAGE = re.compile(r"env\.(?:prod(?:uction)?|stag(?:e|ing)|dev(?:elopment)?|test|local|ci)(?:\..+)?")
_SSH_KEY = re.compile(r"id_(?:rsa|dsa|ecdsa|ed25519|xmss|ecdsa_sk|ed25519_sk)(?:[_-][\w-]*)?")
"""ssh-keygen(1). These have no ending: `id_rsa.pub` is public. Other names with `id_` (`id_map.py`) are looked into."""
_KEY_ALGORITHMS = ("_rsa", "-rsa", "_dsa", "_ecdsa", "_ed25519", "-ed25519")
"""At the end of keys that somebody named otherwise, such as `deploy_rsa`; they are looked into."""


def _named(table: Mapping[SecretKind, str]) -> dict[str, SecretKind]:
    return {name: kind for kind, names in table.items() for name in names.split()}


_EXACT = _named({
    # dotenv; Cloudflare's wrangler; nektos/act
    _ENV: ".dev.vars .secrets",
    # AWS, s3cmd, gsutil, Databricks, rclone, MySQL, curl, Mercurial's and others' own files: nothing but credentials in them
    _LINES: "credentials .credentials credentials.ini credentials.properties .s3cfg .boto .databrickscfg rclone.conf"
    " .rclone.conf .my.cnf .curlrc _curlrc .passwd .vault-credentials secrets.ini secrets.properties secret.properties"
    " .msmtprc .fetchmailrc .sentryclirc .wakatime.cfg keystore.properties key.properties signing.properties .oci_config",
    # Cargo, Streamlit
    _TOML: "credentials.toml secrets.toml",
    # Rails, Kubernetes, Home Assistant
    _YAML: "secrets.yml secrets.yaml secret.yml secret.yaml credentials.yml credentials.yaml",
    # Google, Gemini, clasp, Kaggle, Terraform, .NET
    _JSON: "credentials.json .credentials.json secrets.json secret.json .clasprc.json kaggle.json oauth_creds.json"
    " credentials.tfrc.json client_secret.json client_secrets.json application_default_credentials.json token.json"
    " .dockerconfigjson serviceaccountkey.json",
    # netrc(5); Emacs
    SecretKind("netrc"): ".netrc _netrc .authinfo",
    # git-credential-store(1)
    SecretKind("urls"): ".git-credentials",
    # PostgreSQL: host:port:database:user:password
    SecretKind("fields", kept_fields=4): ".pgpass pgpass.conf",
    # Apache; s3fs
    SecretKind("fields", kept_fields=1): ".htpasswd .passwd-s3fs",
    # one token or password in a file, or an encrypted store
    _WHOLE: ".vault-token .vault_pass .vault_pass.txt .vault-pass .vault_password .vault_password.txt vault_pass.txt master.key"
    " secret.key secret_key secret_key_base .secret .secret_key .token .mylogin.cnf .rediscli_auth accesskeys.csv credentials.csv"
    " credentials.db settings-security.xml access_tokens.db secring.gpg .erlang.cookie token.pickle",
    # package managers; HTTP clients; Jupyter; SonarQube; Gradle, Android; Spring; ansible; WireGuard
    _SOME_LINES: ".npmrc .yarnrc .pypirc pip.conf pip.ini .condarc .gemrc .wgetrc .hgrc hgrc"
    " .terraformrc terraform.rc sonar-project.properties gradle.properties local.properties application.properties"
    " .lftprc wp-config.php localsettings.php alembic.ini odbc.ini .odbc.ini .wp-config.php",
    _SOME_TOML: "bunfig.toml .bunfig.toml",
    _SOME_YAML: ".yarnrc.yml database.yml kubeconfig kubeconfig.yml kubeconfig.yaml application.yml application.yaml vault.yml"
    " vault.yaml .aider.conf.yml docker-compose.override.yml compose.override.yaml compose.override.yml",
    # Docker; Composer and Codex; .NET and Azure; SFTP in editors; agents and MCP clients
    _SOME_JSON: ".dockercfg auth.json appsettings.json local.settings.json .ftpconfig sftp-config.json sftp.json .remote-sync.json"
    " .ftppass mcp.json .mcp.json settings.local.json claude_desktop_config.json ormconfig.json .deployment-config.json"
    " jupyter_server_config.json opencode.json .opencode.json",
    # Maven, NuGet, FileZilla
    _SOME_XML: "settings.xml nuget.config sitemanager.xml recentservers.xml filezilla.xml",
})  # fmt: skip
_ENDINGS = _named({
    _ENV: "env",
    _KEY: "pem key asc ovpn",
    _SURE_KEY: "ppk p8",
    _WHOLE: "p12 pfx pkcs12 jks keystore bcfks kdbx kdb agekey",
    _JSON: "tfstate",
    _SOME_LINES: "tfvars",
    _SOME_YAML: "kubeconfig",
})  # fmt: skip
_PATTERNS: Mapping[str, tuple[tuple[re.Pattern[str], SecretKind], ...]] = {
    "json": (
        (
            re.compile(
                r"(?:client_secret|.*service[_-]?account|.*firebase-adminsdk).*\.json|.*[-_.](?:credentials?|secrets?)\.json"
            ),
            _JSON,
        ),
        (re.compile(r".*key\.json|[a-z0-9-]+-[0-9a-f]{12}\.json"), SecretKind("json", "key")),  # so Google names keys
        (re.compile(r"appsettings\..*\.json|.*\.tfvars\.json"), _SOME_JSON),
    ),
    "yml": ((re.compile(r"(?:.*[-_.]secrets?|application-.*)\.yml"), _SOME_YAML),),
    "yaml": ((re.compile(r"(?:.*[-_.]secrets?|application-.*)\.yaml"), _SOME_YAML),),
    "toml": ((re.compile(r".*[-_.]secrets?\.toml"), _TOML),),
    "properties": ((re.compile(r"application-.*\.properties"), _SOME_LINES),),
    "conf": ((re.compile(r"wg\d*\.conf"), _SOME_LINES),),
    "csv": ((re.compile(r".*[_-]accesskeys\.csv|.*[_-]credentials\.csv"), _WHOLE),),
    "backup": ((re.compile(r".*\.tfstate\.backup"), _JSON),),
}
_IN_FOLDERS: Mapping[tuple[str, str], SecretKind] = {
    (".docker", "config.json"): _SOME_JSON,
    (".kube", "config"): _SOME_YAML,
    (".aws", "config"): _SOME_LINES,
    (".cargo", "config.toml"): _SOME_TOML,
    (".continue", "config.json"): _SOME_JSON,
    (".continue", "config.yaml"): _SOME_YAML,
    ("gh", "hosts.yml"): _SOME_YAML,
    ("huggingface", "token"): _WHOLE,
    (".huggingface", "token"): _WHOLE,
    ("config", "config.json"): _SOME_JSON,
}
