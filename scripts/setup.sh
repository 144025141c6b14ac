#!/bin/sh
# Makes .venv ready: a virtual environment with uv, sandboxmcp (editable) and the dev group. Quick when nothing changed.
# PYTHON=/path/to/python3 chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."
[ -n "${HOME:-}" ] || unset HOME # a blank HOME would put caches into the working folder

fail() {
    printf 'setup: %s\n  Fix: %s\n' "$1" "$2" >&2
    exit 1
}

is_new_enough() {
    command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Debian ships the module venv without what it needs; ensurepip comes with python3-venv.
can_make_venvs() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

find_python() {
    new_enough=
    for candidate in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3 python3.14 python3.13 python3.12 python3.11; do
        is_new_enough "$candidate" || continue
        can_make_venvs "$candidate" && python=$candidate && return
        new_enough=${new_enough:-$candidate}
    done
    if [ -n "$new_enough" ]; then
        version=$("$new_enough" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        fail "$new_enough cannot make virtual environments: python3-venv is missing." \
            "sudo apt-get install python3-venv (or python$version-venv), then run make again."
    fi
    found=$(python3 --version 2>&1 || true)
    fail "Python 3.11 or newer is needed; python3 here says: ${found:-nothing}." \
        "Install it (Debian 12, Ubuntu 24.04 and later have it as python3), or name one: PYTHON=/path/to/python3.12 make ..."
}

is_usable() {
    .venv/bin/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Line 1: the folder, since the programs of a virtual environment that was moved do not start. Line 2: what was installed.
folder=$(pwd)
inputs=$(cat pyproject.toml constraints-dev.txt scripts/setup.sh | cksum)
stamp=.venv/sandboxmcp-ready
made_in=$(sed -n 1p "$stamp" 2>/dev/null || pwd)
if [ "$made_in" = "$folder" ] && is_usable; then
    [ "$(sed -n 2p "$stamp" 2>/dev/null || true)" != "$inputs" ] || exit 0
else
    find_python
    echo "setup: .venv with $("$python" --version)"
    "$python" -m venv --clear .venv || fail "$python -m venv failed (above)." "sudo apt-get install python3-venv, then run make again."
fi
echo "setup: installing dependencies"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-dev.txt uv ||
    fail "pip could not install uv (above)." "Make sure that pip reaches a package index (network, proxy or PIP_INDEX_URL), then run make again."
# Byte code at once: servers and kernels are started hundreds of times, perhaps by users who cannot write here.
.venv/bin/uv pip install --quiet --python .venv/bin/python --compile-bytecode --editable . --group dev \
    --constraint constraints-dev.txt --build-constraint constraints-dev.txt ||
    fail "uv could not install the dependencies (above)." "Make sure that uv reaches a package index (network, proxy or UV_DEFAULT_INDEX), then run make again."
.venv/bin/python -m compileall -q kernels/guest # an editable install leaves it out, and the sandbox cannot write it
printf '%s\n%s\n' "$folder" "$inputs" >"$stamp"
echo "setup: ready"
