"""Settings of git inside a sandbox that keep masks out of its repository. Pure.

For a file that is shown masked git takes the content that its index has (that of HEAD while the index is made anew). So what it
compares, adds or commits is never the mask, even where times and length do not convince it: a file as new as the index is compared
by content (Documentation/technical/racy-git.txt). A file that git does not have is refused. The settings are the system's own files
inside, which have the lowest rank: a repository that names a filter of its own for such a file gets the mask from it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

_FILTER, _LIST = "/opt/sandboxmcp/git-filter", "/opt/sandboxmcp/masked"
FILTER_SETTINGS = f"""\
[filter "sandboxmcp"]
\tclean = sh {_FILTER} %f
\tsmudge = cat
\trequired = true
"""
_SCRIPT = f"""\
# Standard input is a file of the work tree, $1 its path from the top, where git starts this.
LC_ALL=C grep -aqxF -- "$(pwd -P)/$1" {_LIST} || exec cat
cat > /dev/null
git cat-file blob ":0:$1" 2> /dev/null || git cat-file blob "HEAD:$1" 2> /dev/null && exit
printf '%s is shown masked in this sandbox, so it cannot be added here: add it outside\\n' "$1" >&2
exit 1
"""


def filter_files(workspace: str, masked: Sequence[str]) -> Mapping[str, bytes]:
    """Path inside to content, for masked files relative to the workspace; none for none. FILTER_SETTINGS goes with them."""
    if not masked:
        return {}
    names = sorted({re.sub(rb"[^\w.-]", b"?", os.fsencode(os.path.basename(name))) for name in masked})
    listed = "".join(f"{workspace}/{name}\n" for name in masked)
    return {
        "/etc/gitattributes": b"".join(name + b" filter=sandboxmcp\n" for name in names),
        _FILTER: _SCRIPT.encode(),
        _LIST: os.fsencode(listed),
    }
