"""Reads a fetched page in a process of its own: what a server chose to send may not hold the host up, nor use up its memory.

Readers of HTML and PDF have inputs of a few kilobytes that take them minutes, and nothing ends a thread. The process has a time,
a memory, and an environment in which nothing is secret; it is started by module name with `-P`, so that no file of the working
folder is imported.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

from sandboxmcp.core.errors import UsageError
from sandboxmcp.store.pagetext import decoded, page_text, recognised

MOST_S = 30.0
_MOST_S_OF_PDF = 120.0
_MOST_MEMORY = 2 << 30
_QUICK = ("text/plain", "text/markdown", "text/csv")
"""Kept as they are: nothing is read that could take long."""
_PASSED = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "VIRTUAL_ENV")


def read_page(content: bytes, mime: str, charset: str, url: str) -> tuple[str, str]:
    """What `page_text` gives; a text that takes too long, or too much memory, comes as it is.

    Raises:
        UsageError: it is neither text nor PDF, or a PDF that cannot be read within the limits.
    """
    mime = recognised(content, mime)
    if mime in _QUICK:
        return page_text(content, mime, charset, url)
    order = json.dumps({"mime": mime, "charset": charset, "url": url}).encode() + b"\n"
    environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__],
            input=order + content,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            timeout=_MOST_S_OF_PDF if mime == "application/pdf" else MOST_S,
            check=False,
        )
        said, _, text = done.stdout.partition(b"\n")
        found = json.loads(said)
    except (subprocess.TimeoutExpired, ValueError):
        if mime == "application/pdf":
            raise UsageError(f"{url} is a PDF that takes too long, or too much memory, to be read") from None
        return decoded(content, charset), mime
    if "refused" in found:
        raise UsageError(found["refused"], found["fix"])
    return text.decode(errors="surrogatepass"), found["mime"]


def main() -> None:
    """One page from standard input to standard output, each after a line of JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(_MOST_S_OF_PDF), int(_MOST_S_OF_PDF)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    order = json.loads(sys.stdin.buffer.readline())
    try:
        text, mime = page_text(sys.stdin.buffer.read(), order["mime"], order["charset"], order["url"])
        found, body = {"mime": mime}, text.encode(errors="surrogatepass")
    except UsageError as error:
        found, body = {"refused": error.what, "fix": error.fix}, b""
    sys.stdout.buffer.write(json.dumps(found).encode() + b"\n" + body)


if __name__ == "__main__":
    main()
