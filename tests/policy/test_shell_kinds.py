"""With `Bash(rm:*)` denied by Claude Code's settings, rm is found wherever bash would run it, and nowhere else."""

import json
import sys
from pathlib import Path

import pytest

from sandboxmcp.policy.analysis.shell_scan import scan
from sandboxmcp.policy.claude_permissions import claude_packs
from sandboxmcp.policy.engine import Engine, load_engine

DENIED = """\
cat <<EOF > n.txt; rm victim.txt⏎body⏎EOF
cat <<EOF; rm v⏎x⏎EOF
sh 0<<E⏎rm v⏎E
sh 0<<< 'rm v'
command alias l=rm; l v
builtin hash -p /bin/rm l; l v
time -p alias l='rm v'⏎l
dc -e '!rm v'
parallel ::: 'rm v'
parallel rm ::: v
c=ls; eval c=rm; rm v
for x in 1; { rm v; }
cat <<EOF > f & rm v⏎x⏎EOF
cat <<EOF | tee b; rm v⏎x⏎EOF
cat <<A <<B; rm v⏎x⏎A⏎y⏎B
cat <<A && rm v⏎x⏎A
(cat <<A; rm v)⏎x⏎A
cat <<-A; rm v⏎→x⏎→A
cat <<'A B'; rm v⏎x⏎A B
cat <<A⏎x⏎ A⏎A⏎rm v
cat <<A⏎x⏎A ⏎A⏎rm v
x=$(cat <<A⏎y⏎A⏎); rm v
x=$(cat <<A⏎y⏎A); rm v
echo "$(cat <<'E'⏎x ' " `⏎E⏎)"; rm v
cat <<A $(rm v)⏎x⏎A
cat <<A⏎$(rm v)⏎A
cat <<A⏎${x:-`rm v`}⏎A
cat <<A⏎$(cat <<B⏎$(rm v)⏎B⏎)⏎A
cat <<\\E⏎x⏎E⏎rm v
cat <<E\\⏎F; rm v⏎x⏎EF
cat <<E⏎x\\⏎E⏎y⏎E⏎rm v
cat <<$'E'; rm v⏎x⏎E
cat <\\⏎<E; rm v⏎x⏎E
f() { cat <<E; rm v; }⏎x⏎E
while cat <<E; do rm v; break; done⏎x⏎E
true | bash <<E⏎rm v⏎E
cat <<E | tee f | bash⏎rm v⏎E
bash 3<<E <&3⏎rm v⏎E
time { rm v; }
coproc N { rm v; }
: <>f; rm v
$\\⏎(rm v)
trap 'rm v' EXIT
PS4='$(rm v)'; set -x; ls
x='$(rm v)'; echo "${x@P}"
x='a[$(rm v)]'; echo $((x))
[[ -v 'a[$(rm v)]' ]]
printf -v 'a[$(rm v)]' 1
read 'a[$(rm v)]' <<< 1
unset 'a[$(rm v)]'
mapfile -C 'rm v' -c 1 a <<< b
env - rm v
env -S 'rm v'
nsenter -t 1 -m rm v
runuser root -c 'rm v'
pkexec rm v
start-stop-daemon -S -x /bin/rm -- v
at now <<E⏎rm v⏎E
echo '* * * * * rm v' | crontab -
printf 'all:\\n\\trm v\\n' | make -f -
ls | entr rm v
ssh -o ProxyCommand='rm v' host
git rebase -x 'rm v' main
git submodule foreach 'rm v'
man -P 'rm v' ls
less '+!rm v' f
sqlite3 db '.shell rm v'
socat - EXEC:'rm v' > f
cat > x.sh <<E⏎rm v⏎E⏎bash x.sh
echo 'rm v' | tee s >f; . s
printf '#!/bin/sh\\nrm v\\n' > x; chmod +x x; ./x
echo 'import os; os.system("rm v")' > x.py && python3 x.py
echo 'rm v' > a; cp a b; source ./b
bash +x -c 'rm v'
bash +o errexit -c 'rm v'
bash +O extglob -c 'rm v'
bash +xc 'rm v'
bash -oc pipefail 'rm v'
bash -n +n -c 'rm v'
bash -norc -c 'rm v'
dash +e -c 'rm v'
timeout 5 sh +x -c 'rm v'
sh +x <<EOF⏎rm v⏎EOF
echo 'rm v' | bash +x
r\\⏎\\⏎m v
/bin/\\⏎\\⏎rm v
r\\⏎\\⏎\\⏎m v
echo "$(r\\⏎\\⏎m\\⏎\\⏎ v)"
cat <<A⏎$(r\\⏎\\⏎m v)⏎A
alias rm=ls; rm v
alias ll='rm v'; ll
{r,}m v
{rm,} v
r{m..m} v
{/bin/,}rm v
{,,}rm v
{{r,}m,x} v
{r,'x'}m v
{/bin/rm,-f} v
env r{m..m} v
cat <<A⏎$({rm,} v)⏎A
cat <<E\fX⏎x⏎E\fX⏎rm v
cat <<E\f⏎x⏎E\f⏎rm v
cat <<E\v; rm v⏎x⏎E\v
cat <<E\r⏎x⏎E\r⏎rm v
x=(;⏎rm v
x=(a | b⏎rm v
x=( 2>&1⏎rm v
x=(()⏎rm v
declare x=(&⏎rm v
x=(a=(b;⏎rm v
x=$(y=(; '⏎rm v
exec <<E⏎rm v⏎E⏎sh
(exec <<< 'rm v'; sh)
sh -c 'sh' <<E⏎rm v⏎E
sh -c '. /dev/stdin' <<E⏎rm v⏎E
bash -c 'sh -s a' <<< 'rm v'
eval sh <<< 'rm v'
echo 'rm v' | sh -c sh
sh /proc/self/fd/0 <<E⏎rm v⏎E
sh /proc/$$/fd/0 <<< 'rm v'
cd /dev; sh stdin <<< 'rm v'
exec 0<<< 'rm v'⏎sh
xargs -I{} sh -c '{}' <<< 'rm v'
xargs -I% % v <<< rm
hash -p /bin/rm ls; ls v
BASH_CMDS[ls]=/bin/rm; ls v
a['$(rm v)']=1
setarch x86_64 rm v
setarch x86_64 -R rm v
choom -n 0 -- rm v
sg root 'rm v'
uname26 rm v"""

ALLOWED = """\
cat <<EOF > n.txt; ls⏎rm body⏎; rm x⏎EOF
cat <<A <<B⏎rm x⏎A⏎rm y⏎B
cat <<A⏎ A⏎rm x⏎A
cat <<'A'⏎$(rm x)⏎A
cat <<A⏎\\$(rm x) \\`rm x\\`⏎A
cat <<-A⏎→rm x⏎→A⏎ls
x=$(cat <<'E'⏎rm x ' "⏎E⏎)
echo $((1<<2)); (( a<<b )); let "x<<=1"⏎ls
a[1<<2]=rm; ls
cat <<< 'rm x'
echo "<<E"⏎ls # <<E rm x
case rm in rm) ls;; esac
echo ${x:-rm x}
[[ rm < x ]]
rm_=1; echo rm x > rm.txt; cat rm.txt
{echo,rm} v
x={r,}m; ls {1..3} a/{rm,b}
x=(a b "c;d" $(ls; ls) <(ls) [1]=x); ls
x=(a # c; d⏎rm); ls
shopt -s extglob; x=(@(a|rm) v); ls
sh -c cat <<< 'rm v'
a[1]=rm; a['x']=rm; hash -r rm; ls"""


def _cases(table: str) -> list[str]:
    return [line.replace("⏎", "\n").replace("→", "\t") for line in table.split("\n")]


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    file: Path = tmp_path_factory.mktemp("claude") / "settings.json"
    file.write_text(json.dumps({"permissions": {"deny": ["Bash(rm:*)"]}}))
    return load_engine(imported=claude_packs((file,)))


@pytest.mark.parametrize("code", _cases(DENIED))
def test_what_bash_would_run_is_denied(strict: Engine, code: str) -> None:
    assert [strict.judge(code, "shell", setting).rule for setting in ("kernel", "host")] == ["deny-1", "deny-1"]


@pytest.mark.parametrize("code", _cases(ALLOWED))
def test_what_bash_would_not_run_is_allowed(strict: Engine, code: str) -> None:
    assert [strict.judge(code, "shell", setting).action for setting in ("kernel", "host")] == ["allow", "allow"]


def test_lines_stay_behind_a_heredoc(strict: Engine) -> None:
    verdict = strict.judge("cat <<A; ls\nx\ny\nA\nls\nrm v\n", "shell")
    assert (verdict.action, verdict.line) == ("deny", 6)
    assert strict.judge("bash <<A\nls\nrm v\nA\n", "shell").line == 3


UNKNOWN = {
    "nameref": ("shell", "declare -n q=c; c=rm; $q v"),
    "set-by-a-nameref": ("shell", "c=ls; declare -n q=c; q=rm; $c v"),
    "lowercase": ("shell", "declare -l d=RM; $d v"),
    "array": ("shell", "x=(rm); ${x} v"),
    "script-on-a-descriptor": ("shell", "exec 3<<< 'rm v'; sh <&3"),
    "braces": ("shell", "{$x,rm} v"),
    "decoded-script": ("shell", "base64 -d f > s; sh s"),
    "fetched-script": ("shell", "curl -sS -o i.sh https://example.org; bash i.sh"),
    "copied-script": ("shell", "cp a b; bash b"),
    "script-of-python": ("shell", "python3 -c \"open('x.sh','w').write(y)\"; bash x.sh"),
    "global-by-a-sum": ("javascript", "globalThis['fet'+'ch'](u)"),
    "global-by-a-name": ("javascript", "window[x](u)"),
    "global-renamed": ("javascript", "const g = globalThis; g['fe'+'tch'](u)"),
    "module-by-a-name": ("javascript", "require(x).get(u)"),
    "binding": ("javascript", "process.binding('spawn_sync')"),
    "constructor": ("javascript", "[].constructor.constructor(x)()"),
    "python-getattr": ("python", "import os\ngetattr(os, x)('ls')"),
    "python-globals": ("python", "globals()['ex' + 'ec'](x)"),
    "ruby-send": ("ruby", "Kernel.send(x, 'ls')"),
    "perl-eval": ("perl", "eval $x"),
    "php-function": ("php", "$f('ls');"),
    "r-do-call": ("r", "do.call(f, list('ls'))"),
}


@pytest.mark.parametrize(("language", "code"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_made_up_at_run_time_is_asked_about_on_the_host(engine: Engine, language: str, code: str) -> None:
    assert [engine.judge(code, language, setting).action for setting in ("kernel", "host")] == ["allow", "ask"]


HARMLESS = {
    "existing-script": ("shell", "bash a.sh > a.log"),
    "touched-script": ("shell", "touch a.sh; bash a.sh"),
    "sed": ("shell", "sed -i 's/a/b/' src/*.c"),
    "javascript": ("javascript", "const fs = require('fs'); console.log(process.env['HOME'], x['y']); import('./a.js')"),
    "perl": ("perl", "eval { foo(); 1 } or die; require Foo;"),
    "ruby": ("ruby", "obj.send(:foo, 1)"),
    "php": ("php", "$x->foo(1); echo strlen($a);"),
    "python": ("python", "print(getattr(os, 'name'), getattr(x, y))"),
}


@pytest.mark.parametrize(("language", "code"), HARMLESS.values(), ids=HARMLESS)
def test_harmless_neighbours_are_allowed_on_the_host(engine: Engine, language: str, code: str) -> None:
    assert engine.judge(code, language, "host").action == "allow"


SHAPES = {
    "heredocs": "cat <<A; c\nx $(c)\nA\n",
    "heredocs-without-end": "<<A\n",
    "substitutions": "$(",
    "sums": "$((",
    "sums-of-commands": "((a ) ) ",
    "backticks": "`a` ",
    "quotes": "\"a\" 'b' ",
    "cases": "case a in b) c;; esac; ",
    "split-operators": "<\\\n<E\n",
}


@pytest.mark.parametrize("unit", SHAPES.values(), ids=SHAPES)
def test_the_steps_of_the_scan_grow_with_the_length(unit: str) -> None:
    small, large = (_steps(unit * count) for count in (2_000, 4_000))
    assert large <= 2.1 * small


def _steps(code: str) -> int:
    """How many functions of Python are called while the code is scanned."""
    count = 0

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(called)
    try:
        scan(code.encode())
    finally:
        sys.setprofile(None)
    return count
