"""Code in which the script puts what nobody knows may be any code: it is asked about on the host."""

import pytest

from sandboxmcp.policy.analysis.analyse import facts_of
from sandboxmcp.policy.engine import Engine
from sandboxmcp.policy.facts import Command, Embedded, Unknown

BUILT = [
    "x=$(printf '; rm -rf y'); bash -c \"echo $x\"",
    'x=`cat f`; eval echo "$x"',
    'read x; eval "echo $x"',
    'read -r a b < f; sh -c "cd $b && ls"',
    'eval "echo $(cat f)"',
    'bash -c "echo `cat f`"',
    'x=$(cat f); trap "echo $x" EXIT',
    "x=$(cat f)\nbash <<E\necho $x\nE",
    'x=$(cat f); ssh host "ls $x"',
    'printf -v x "$(cat f)"; eval "ls $x"',
    'mapfile x < f; eval "ls ${x[0]}"',
    'x=$(getopt -u -o a -- "$@"); eval set -- "$x"',
    'x=$(mktemp; cat f); eval "ls $x"',
]
HARMLESS = [
    'bash -c "cd $DIR && make"',
    'eval "$EDITOR file"',
    'tmp=$(mktemp -d); trap "rm -rf $tmp" EXIT',
    'tmp=`mktemp`; trap "rm -f $tmp" 0',
    'x=$(getopt -o ab: -- "$@"); eval set -- "$x"',
    'eval set -- "$(getopt -o ab: -- "$@")"',
    'x=3; bash -c "echo $x"',
    'x=$(cat f); echo "$x"',
    'x=$(cat f); sed "s/a/$x/" g',
    'x=$(cat f); bash -c \'echo "$1"\' _ "$x"',
]


def _unknown(engine: Engine, code: str) -> bool:
    return any(
        isinstance(fact, Unknown) and fact.what.startswith("all of the code") for fact in facts_of(code, "shell", engine.knowledge)
    )


@pytest.mark.parametrize("code", BUILT)
def test_code_that_is_built_from_what_is_unknown_is_not_all_known(engine: Engine, code: str) -> None:
    assert any(isinstance(fact, Unknown) for fact in facts_of(code, "shell", engine.knowledge))


@pytest.mark.parametrize("code", HARMLESS)
def test_what_comes_from_outside_or_is_no_code_is_not_asked_about(engine: Engine, code: str) -> None:
    assert not _unknown(engine, code)


@pytest.mark.parametrize("before", ["", "<<E ", '<<$"E" '])
def test_a_bracket_that_an_expansion_puts_in_hides_nothing(engine: Engine, before: str) -> None:
    code = f"c3 {before}${{x/a/(}}\nE\nc='$(c4)'; eval echo \"$c\"; cat <<< c5 | bash\n"
    commands = {fact.name for fact in facts_of(code, "shell", engine.knowledge) if isinstance(fact, Command)}
    embedded = {fact.code for fact in facts_of(code, "shell", engine.knowledge) if isinstance(fact, Embedded)}
    assert commands >= {"c3", "c4"} and any("c5" in one for one in embedded)


def test_an_alias_that_the_tree_shows_too_late_counts_for_the_commands_before_it(engine: Engine) -> None:
    code = "A=case c1 d6$(( hash -p $PWD/../bin/c2 d7; d7 ) |\nA+=\"$x d8\" $'c3' &>d9 )d6\n"
    facts = facts_of(code, "shell", engine.knowledge)
    assert "c2" in {fact.name for fact in facts if isinstance(fact, Command)}
