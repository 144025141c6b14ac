"""Random shell scripts whose commands are all harmless recorders.

A command is `c` with a number of its own, which recorded.py makes write its name into a log. Words that must never run are `d` with
a number. Every script is made from its seed alone. At most one of its commands is started by a detour: through a variable, another
program, a file, an alias and so on.
"""

import random
from collections.abc import Callable

_DELIMITERS = ("E", "'E'", '"E"', "\\E", "E'O'F", "$'E'", '$"E"', "E-1", "'E F'", "E\\\nF", "!", "%%", "E.O")
_PLAIN_DELIMITERS = {"E\\\nF": "EF"}


class Script:
    """A script in the making. Heredocs that are begun get their text behind the next end of a line at their own level."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.commands = 0
        self.data_words = 0
        self.delimiters = 0
        self.pending: list[list[str]] = [[]]
        self.depth = 0
        self.detours = int(self.often(0.5))
        """That may still be made."""
        self.plain = 0
        """Above 0: in backticks, where neither backslashes nor backticks are made."""
        self.text = self.lines(self.random.randint(1, 3)) + self.newline()

    def one(self, *choices: Callable[[], str]) -> str:
        return self.random.choice(choices)()

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def name(self) -> str:
        self.commands += 1
        return f"c{self.commands}"

    def data(self) -> str:
        self.data_words += 1
        return f"d{self.data_words}"

    def newline(self) -> str:
        bodies = "".join(self.pending[-1])
        self.pending[-1].clear()
        return "\n" + bodies

    # Lists

    def lines(self, count: int) -> str:
        text = self.statement()
        for _ in range(count - 1):
            text += self.one(
                self.newline, self.newline, lambda: "; ", lambda: " & ", lambda: f" # {self.data()} 'q << E{self.newline()}"
            )
            text += self.statement()
        return text

    def inner(self) -> str:
        """A list that stands in something else."""
        return self.lines(1 + (self.often(0.3) and self.depth < 2))

    def statement(self) -> str:
        text = self.pipeline()
        while self.often(0.2):
            text += self.one(lambda: " && ", lambda: " || true && ", lambda: "&&", lambda: f" &&{self.newline()}") + self.pipeline()
        return text

    def pipeline(self) -> str:
        text = self.random.choice(("", "", "", "", "! ", "time ", "time -p ")) + self.command()
        while self.often(0.2):
            text += self.one(lambda: " | ", lambda: "|", lambda: " |& ", lambda: f" |{self.newline()}") + self.command()
        return text

    def command(self) -> str:
        self.depth += 1
        if self.detours and self.often(0.4):
            self.detours -= 1
            text = self.one(*detours(self))
            self.depth -= 1
            return text
        simple = self.depth > 2 or self.often(0.6)
        text = self.simple() if simple else self.one(*self.compounds()) + self.redirections()
        self.depth -= 1
        return text

    def simple(self) -> str:
        before = self.one(
            lambda: "",
            lambda: "",
            lambda: "",
            lambda: f"A={self.word()} ",
            lambda: f"a[1<<2]={self.data()} ",
            lambda: f">{self.data()} ",
            lambda: f"a=({self.words()} [3]={self.data()}) B=1; ",
            lambda: f"A+={self.word()} ",
        )
        name = self.name()
        if self.often(0.1):
            name = self.random.choice((f"'{name}'", f'"{name}"', f"{name[0]}''{name[1:]}", f"$'{name}'"))
        if self.often(0.1) and not self.plain:
            name = f"\\{name}" if name[0] == "c" else f"{name[:2]}\\\n{name[2:]}"
        text = before + name
        for _ in range(self.random.randint(0, 3)):
            text += " " + self.one(self.word, self.word, self.redirection)
        return text

    def redirections(self) -> str:
        return " " + self.redirection() if self.often(0.3) else ""

    def redirection(self) -> str:
        if self.often(0.6):
            return self.heredoc()
        return self.one(
            lambda: f">{self.data()}",
            lambda: f"2>> {self.data()}",
            lambda: "2>&1",
            lambda: f"<<<{self.word()}",
            lambda: f"<<< {self.word()}",
            lambda: f"&>{self.data()}",
            lambda: f">|{self.data()}",
            lambda: f"<>{self.data()}",
            lambda: f"{{fd}}>{self.data()}",
            lambda: f"> >({self.nested()})",
            lambda: f"< <({self.nested()})",
        )

    # Heredocs

    def heredoc(self) -> str:
        choices = [one for one in _DELIMITERS if not self.plain or "\\" not in one]
        chosen = self.random.choice(choices)
        self.delimiters += 1
        number = self.delimiters
        spelled = chosen[:-1] + str(number) + chosen[-1] if chosen[-1] in "'\"" else f"{chosen}{number}"
        bare = _PLAIN_DELIMITERS.get(chosen, chosen).replace("$", "").replace("'", "").replace('"', "").replace("\\", "")
        quoted = any(mark in chosen.replace("\\\n", "") for mark in "'\"\\")
        strips = self.often(0.3)
        body = "".join(self.body_line(quoted) + "\n" for _ in range(self.random.randint(0, 3)))
        end = f"{bare}{number}\n"
        tabs = "\t" if strips and self.often(0.5) else ""
        self.pending[-1].append(body + tabs + end)
        return self.random.choice(("", "", "3", "0")) + ("<<-" if strips else "<<") + self.random.choice(("", " ", "\t")) + spelled

    def body_line(self, quoted: bool) -> str:
        data = self.data()
        lines: list[Callable[[], str]] = [
            lambda: f"; {data}",
            lambda: f"{data} | {data}",
            lambda: f" E{self.delimiters}",
            lambda: f"it's {data}",
            lambda: f'"{data}',
            lambda: f"{data} )",
            lambda: f"# {data}",
            lambda: f"case {data} in",
            lambda: f"{data} <<E",
            lambda: f"<<'{data}'",
            lambda: "",
            lambda: f"{data} }}",
            lambda: f"&& {data}",
            lambda: "((",
            lambda: f"if {data}; then",
        ]
        if quoted:
            lines += [lambda: f"$({data})", lambda: f"${{{data}"]
            lines += [lambda: f"`{data}", lambda: f"{data}\\"] if not self.plain else []
        else:
            lines += [lambda: f"x $({self.nested()}) y", lambda: f"${{x:-$({self.nested()})}}", lambda: f"$((1 << 2)) {data}"]
            if not self.plain:
                lines += [lambda: f"\\$({data})", lambda: f"\\`{data}\\`", lambda: f"{data} \\\\", lambda: self.backticks()]
        return self.random.choice(lines)()

    # Words

    def words(self) -> str:
        return " ".join(self.word() for _ in range(self.random.randint(0, 3)))

    def word(self) -> str:
        data = self.data()
        words: list[Callable[[], str]] = [
            lambda: data,
            lambda: f"'{data} ; {data}'",
            lambda: f'"{data} | {data}"',
            lambda: f'"{data} << E"',
            lambda: f"'<<E {data}'",
            lambda: f'"$x {data}"',
            lambda: f"${{x:-{data}}}",
            lambda: "$((1 << 2))",
            lambda: "$(( (1) + 2 ))",
            lambda: f"{{{data},{data}}}",
            lambda: f"{data}#{data}",
            lambda: f'"it\'s {data}"',
            lambda: f"-{data}=$#",
            lambda: "${#x}",
            lambda: f"[{data}]",
            lambda: f"*.{data}",
            lambda: f"${{x#{data}}}",
            lambda: f'"${{x:-a "{data}" b}}"',
            lambda: f"'{data}\n{data}'",
            lambda: f'"{data}\n{data}"',
            lambda: "case",
            lambda: "}",
            lambda: "esac",
            lambda: "$[1 + 2]",
            lambda: f"'{data}'\"{data}\"{data}",
            lambda: f"${{x/{data}/(}}",
            lambda: "fi",
            lambda: "in",
            lambda: f'"${{x:-{data} << E}}"',
        ]
        if self.depth < 3:
            words += [
                lambda: f"$({self.nested()})",
                lambda: f'"a $({self.nested()}) b"',
                lambda: f"<({self.nested()})",
                lambda: f"${{x:-$({self.nested()})}}",
                lambda: f'"${{x:-$({self.nested()})}}"',
                lambda: f"$((1 + $({self.nested()})0))",
                lambda: f"$( ({self.nested()}) )",
                lambda: f"{data}$({self.nested()}){data}",
            ]
        if not self.plain:
            words += [
                lambda: f"{data}\\ {data}",
                lambda: f"\\<\\<{data}",
                lambda: f"\\'{data}",
                lambda: f'"\\"{data}"',
                lambda: f"$'{data}\\'{data}'",
                lambda: f"\\${data}",
                lambda: f"\\\n{data}",
                lambda: f'"\\$({data})"',
                lambda: f"\\#{data}",
            ]
            if self.depth < 3:
                words += [self.backticks, lambda: f'"{self.backticks()}"']
        return self.random.choice(words)()

    def nested(self) -> str:
        """The inside of a substitution. What it begins it ends."""
        self.pending.append([])
        self.depth += 1
        text = self.random.choice(("", "", " ", "\n")) + self.inner() + self.closing()
        self.depth -= 1
        self.pending.pop()
        return text

    def closing(self) -> str:
        if len(self.pending) > 1 and self.pending[-1]:
            return self.newline()
        return self.random.choice(("", " ", "\n")) if len(self.pending) > 1 else ""

    def backticks(self) -> str:
        self.plain += 1
        text = f"`{self.nested()}`"
        self.plain -= 1
        return text

    # Compound commands

    def compounds(self) -> tuple[Callable[[], str], ...]:
        end = lambda: self.one(self.newline, lambda: "; ")  # noqa: E731
        return (
            lambda: f"{{ {self.inner()}{end()}}}",
            lambda: f"( {self.inner()} )",
            lambda: f"({self.inner()})",
            lambda: f"if {self.inner()}{end()}then {self.inner()}{end()}else {self.inner()}{end()}fi",
            lambda: f"if ! {self.command()}{end()}then {self.inner()}{end()}elif {self.inner()}{end()}then {self.inner()}{end()}fi",
            lambda: f"while {self.inner()}{end()}do {self.inner()}{end()}break{end()}done",
            lambda: f"until {self.inner()}{end()}do {self.inner()}{end()}break{end()}done",
            lambda: f"for x in {self.words()} 1{end()}do {self.inner()}{end()}done",
            lambda: f"for ((i=0;i<1<<1;i++)){end()}do {self.inner()}{end()}done",
            lambda: f"for x in 1{end()}{{ {self.inner()}{end()}}}",
            lambda: f"select x in {self.word()}; do {self.inner()}{end()}break{end()}done <<<1",
            self.case,
            self.function,
            lambda: f"[[ {self.data()} < {self.data()} && (-n x || x =~ (a|b)) ]] || {self.command()}",
            lambda: f'[[ -n "$({self.nested()})" ]]; {self.command()}',
            lambda: f"(( x << 1 )) || {self.command()}",
            lambda: f"(( $({self.nested()}) 1 + 2 )); {self.command()}",
            lambda: f"coproc {{ {self.inner()}{end()}}}; wait",
            lambda: f"coproc N {{ {self.inner()}{end()}}}; wait",
            lambda: f"coproc {self.name()} {self.data()}; wait",
            lambda: f"let 'x<<=1'; {self.command()}",
            lambda: f"eval '{self.name()} {self.data()}'",
            lambda: f"time {{ {self.inner()}{end()}}}",
            lambda: f"test {self.data()} = {self.data()} || {self.command()}",
            lambda: f"[ {self.data()} ] && {self.command()}",
            lambda: f"declare q=$({self.nested()}) r=({self.words()}); {self.command()}",
        )

    def case(self) -> str:
        pattern = self.random.choice(("*", "(*", "a|*", f"'{self.data()}'|*", "[a-z]*", f'("{self.data()}" | *', "esac2|?*"))
        text = f"case {self.data()} in{self.one(lambda: ' ', self.newline)}"
        if self.often(0.5):
            text += self.one(
                lambda: f"{self.data()}) {self.inner()};;", lambda: f"({self.data()}|q) {self.inner()}{self.newline()};;"
            )
        text += f"{self.one(lambda: ' ', self.newline)}{pattern}) {self.inner()} "
        text += self.one(lambda: ";;", lambda: ";&", lambda: ";;&", lambda: "", lambda: f"{self.newline()};;")
        return f"{text}{self.newline()}esac"

    def function(self) -> str:
        name = f"f{self.random.randint(1, 10**6)}"
        heads = (f"{name}() ", f"{name} ()", f"function {name} ", f"function {name}() ")
        head = self.one(lambda: self.random.choice(heads), lambda: f"{name}(){self.newline()}")
        body = self.one(lambda: f"{{ {self.inner()}{self.newline()}}}", lambda: f"( {self.inner()} )")
        return f"{head}{body}; {name}"


def detours(made: Script) -> tuple[Callable[[], str], ...]:
    """Ways in which bash comes to a command other than by its name at the start of a line."""
    name, data, end = made.name(), made.data(), made.newline
    choices: list[Callable[[], str]] = [
        # Variables
        lambda: f"{{ c={name}; $c {data}; }}",
        lambda: f'{{ c={name}; "$c" {data}; }}',
        lambda: f"{{ c={data}; c={name}; $c; }}",
        lambda: f"{{ c={data}; eval c={name}; $c; }}",
        lambda: f"{{ eval 'c={name}'; $c; }}",
        lambda: f"{{ c='{name} {data}'; $c; }}",
        lambda: f"( IFS=,; c={name},{data}; $c )",
        lambda: f"( IFS=x; c={name}x{data}; $c )",
        lambda: f"( c={name},{data}; IFS=,; $c )",
        lambda: f"{{ c=c; c+={name[1:]}; $c; }}",
        lambda: f"{{ c={name[1:]}; c$c; }}",
        lambda: f"{{ c={name[1:]}; c${{c}} {data}; }}",
        lambda: f"${{unset_one:-{name}}} {data}",
        lambda: f"${{unset_one:={name}}} {data}",
        lambda: f"{{ c={name}{data}; ${{c%d*}}; }}",
        lambda: f"{{ c={data}; ${{c/{data}/{name}}}; }}",
        lambda: f"{{ c={name}; q=c; ${{!q}}; }}",
        lambda: f"{{ declare -n q=c; c={name}; $q; }}",
        lambda: f"{{ declare c={name}; $c; }}",
        lambda: f"{{ export c={name}; bash -c '$c'; }}",
        lambda: f"{{ read c <<< {name}; $c; }}",
        lambda: f"{{ read c q <<< '{name} {data}'; $c; }}",
        lambda: f"{{ printf -v c %s {name}; $c; }}",
        lambda: f"{{ mapfile -t c <<< {name}; $c; }}",
        lambda: f'{{ a=({name} {data}); "${{a[@]}}"; }}',
        lambda: f"{{ a=({data} {name}); ${{a[1]}}; }}",
        lambda: f"{{ declare -A a=([{data}]={name}); ${{a[{data}]}}; }}",
        lambda: f"for c in {name}; do $c; done",
        lambda: f"for c in {data} {name}; do $c; done",
        lambda: f"while read c; do $c; done <<< {name}",
        lambda: f"select c in {name}; do $c; break; done <<< 1",
        lambda: f"case {name} in c*) q={name};; esac; $q",
        lambda: f"{{ c=; $c {name}; }}",
        lambda: f"{{ unset q; $q {name} {data}; }}",
        lambda: f'{{ : "${{c:={name}}}"; $c; }}',
        lambda: f"{{ c={name}; f() {{ local c={data}; }}; f; $c; }}",
        lambda: f"{{ c={data}; f() {{ c={name}; }}; f; $c; }}",
        lambda: f"( set -- {name} {data}; $1 )",
        lambda: f'( set -- {name} {data}; "$@" )',
        lambda: f"( set -- {data} {name}; shift; $1 )",
        lambda: f'f() {{ "$@"; }}; f {name} {data}',
        lambda: f"f() {{ $1 {data}; }}; f {name}",
        lambda: f"f() {{ $2; }}; f {data} {name}",
        lambda: f'f() {{ shift; "$@"; }}; f {data} {name}',
        lambda: f"f() {{ g $1; }}; g() {{ $1; }}; f {name}",
        lambda: f"(( c = {name[1:]} )); c$c",
        lambda: f"c={int(name[1:]) - 1}; (( c++ )); c$c",
        lambda: f"c={int(name[1:]) - 1}; : $(( c += 1 )); c$c {data}",
        lambda: f"$c {name}; c={data}",
        lambda: f"c={data}; unset c; $c {name}",
        lambda: f"c={data}; eval unset c; $c {name}",
        lambda: f"c={data}; eval 'read c <<< {name}'; $c",
        lambda: f"c={data}; printf -vc {name}; $c",
        lambda: f"c={data}; command read -r c <<< {name}; $c",
        lambda: f"c={data}; q=c; declare $q={name}; $c",
        lambda: f"c={data}; q=c; read $q <<< {name}; $c",
        lambda: f"if false; then c={data}; fi; $c {name}",
        lambda: f"if false; then c={data}; else $c {name}; fi",
        lambda: f"( c={data} ); $c {name}",
        lambda: f"c={data} true; $c {name}",
        lambda: f"false && c={data}; $c {name}",
        lambda: f"false && c={data} || $c {name}",
        lambda: f"c={data} | cat; $c {name}",
        lambda: f"c={data} & wait; $c {name}",
        lambda: f"coproc {{ c={data}; }}; wait; $c {name}",
        lambda: f"f() {{ local c={data}; }}; f; $c {name}",
        lambda: f"f() {{ c={data}; }}; $c {name}",
        lambda: f"f() {{ $c {name}; }}; f; c={data}",
        lambda: f"c={data}; f() {{ local c; $c {name}; }}; f",
        lambda: f"while false; do c={data}; done; $c {name}",
        lambda: f"case x in y) c={data};; esac; $c {name}",
        lambda: f"c={data} > /no/such/place; $c {name}",
        lambda: f"env $c {name}; c={data}",
        lambda: f'eval "$c {name}"; c={data}',
        lambda: f'bash <<< "$c {name}"; c={data}',
        lambda: f'echo "$c {name}" | bash; c={data}',
        lambda: f"c='../bin/c[{name[1:2]}]{name[2:]}'; $c",
        lambda: f"c=' {name}'; env$c {data}",
        lambda: f"IFS=,; c=,{name}; env$c {data}",
        lambda: f"eval IFS=,; c={name},{data}; $c",
        lambda: f"read IFS <<< ,; c={name},{data}; $c",
        lambda: f"IFS=, read c <<< {name}; $c",
        lambda: f"echo c={name} > f{name}; c={data}; . ./f{name}; $c",
        lambda: f"f() {{ $2; }}; f $unset_one {data} {name}",
        lambda: f"let c={name[1:]}; c$c",
        # Expansions
        lambda: f"{{{name},{data}}}",
        lambda: f"c{{{name[1:]},{name[1:]}}} {data}",
        lambda: f"$(echo {name}) {data}",
        lambda: f"$(printf c%s {name[1:]})",
        lambda: f"$(<<< {name} cat)",
        lambda: f"c$(( {name[1:]} )) {data}",
        lambda: f"$'\\x63'{name[1:]}" if not made.plain else name,
        lambda: f"{{ c='$({name})'; eval echo \"$c\"; }}",
        lambda: f"{{ c='{name} {data}'; eval \"$c\"; }}",
        lambda: f"{{ c='a[$({name})]'; (( c )); }}",
        lambda: f"{{ c='$({name})'; : \"${{c@P}}\"; }}",
        lambda: f"[[ 'a[$({name})]' -eq 1 ]]",
        lambda: f"{{ a=(); a[$({name})0]=1; }}",
        # Builtins and programs that start others
        lambda: f"command {name} {data}",
        lambda: f"builtin eval {name}",
        lambda: f"builtin command {name}",
        lambda: f"command -p env {name}",
        lambda: f"( exec {name} {data} )",
        lambda: f"( exec -a {data} {name} )",
        lambda: f"( exec env {name} )",
        lambda: f"env A=1 {name} {data}",
        lambda: f"env -u A {name}",
        lambda: f"env -S '{name} {data}'",
        lambda: f"nohup {name} {data}",
        lambda: f"nice -n 1 {name}",
        lambda: f"timeout 5 {name}",
        lambda: f"setsid -w {name}",
        lambda: f"{{ time -p {name}; }}",
        lambda: f"echo {data} | xargs {name}",
        lambda: f"echo {name} | xargs env",
        lambda: f"xargs -I% % {data} <<< {name}",
        lambda: f"xargs -n1 bash -c '{name} $0' <<< {data}",
        lambda: f"find . -maxdepth 0 -exec {name} {{}} +",
        lambda: f"find . -maxdepth 0 -exec {name} ';'",
        lambda: f"( trap {name} EXIT )",
        lambda: f"( trap '{name} {data}' EXIT; : )",
        lambda: f"( trap {name} USR1; kill -USR1 $BASHPID )",
        lambda: f"( trap '{name}' ERR; false )",
        lambda: f"( c={name}; trap '$c' EXIT )",
        lambda: f"mapfile -t -C {name} -c 1 a <<< {data}",
        lambda: f"coproc {name}; wait",
        lambda: f"( hash -p $PWD/../bin/{name} {data}; {data} )",
        # Shells
        lambda: f"bash -c '{name} {data}'",
        lambda: f"sh -c {name}",
        lambda: f"bash -c '$0 {data}' {name}",
        lambda: f"bash -c '\"$@\"' {data} {name}",
        lambda: f"bash -c 'eval $1' {data} {name}",
        lambda: f"echo {name} | bash",
        lambda: f"printf '%s\\n' {name} | sh" if not made.plain else f"echo {name} | sh",
        lambda: f"bash <<< {name}",
        lambda: f"bash <(echo {name})",
        lambda: f"bash -s {data} <<< '{name} $1'",
        lambda: f"BASH_ENV=<(echo {name}) bash -c :",
        lambda: f"( export BASH_ENV=f{name}; echo {name} > f{name}; bash -c : )",
        lambda: f"PROMPT_COMMAND={name} bash --norc -i </dev/null",
        lambda: f"bash --rcfile <(echo {name}) -ic :",
        lambda: f"ENV=<(echo {name}) sh -i </dev/null",
        lambda: f"( echo '{name}() {{ :; }}'; ) | cat; {name}",
        # Files
        lambda: f"{{ echo {name} > f{name}; . ./f{name}; }}",
        lambda: f"{{ echo {name} > f{name}; bash f{name}; }}",
        lambda: f"{{ echo {name} | tee f{name}; sh ./f{name}; }}",
        lambda: f"{{ printf {name} > f{name}; source ./f{name}; }}",
        lambda: f"source <(echo {name})",
        lambda: f". /dev/stdin <<< {name}",
        lambda: f'eval "$(echo {name})"',
        lambda: f"eval `echo {name}`" if not made.plain else f"eval {name}",
        lambda: f"eval eval {name} {data}",
        lambda: f"eval $(: )'{name}'",
        # Aliases
        lambda: f"shopt -s expand_aliases{end()}alias q={name}{end()}q {data}",
        lambda: f"shopt -s expand_aliases{end()}alias q='{name} {data}; {name}'{end()}q",
        lambda: f"shopt -s expand_aliases{end()}alias q='env ' {data}={name}{end()}q {data}",
        lambda: f"shopt -s expand_aliases{end()}c={name}; alias q=$c{end()}q",
        lambda: f"shopt -s expand_aliases{end()}alias q='if {name}; then'{end()}q :; fi",
        lambda: f"shopt -s expand_aliases{end()}alias c={name}{end()}c",
        lambda: f"shopt -s expand_aliases{end()}alias q=r r={name}{end()}q",
        lambda: f"shopt -s expand_aliases{end()}alias q='q2 && {name}'{end()}true && q",
        lambda: f"shopt -s expand_aliases{end()}alias q={name}{end()}eval 'q {data}'",
        lambda: f"shopt -s expand_aliases{end()}alias q='eval ' r={name}{end()}q r",
        lambda: f"hash -p $PWD/../bin/{name} {data}; eval {data}",
        lambda: f"env PROMPT_COMMAND={name} bash --norc -i </dev/null",
        lambda: f"echo {name} > f{name}; env BASH_ENV=f{name} bash -c :",
        lambda: f"BASH_ALIASES[q]={name}; shopt -s expand_aliases{end()}q",
        # Pipes into loops
        lambda: f"echo {name} | while read c; do $c; done",
        lambda: f"echo {name} | {{ read c; $c; }}",
        lambda: f"cat <<< {name} | bash",
        lambda: f"{{ c=$(echo {name}); $c; }}",
        lambda: f"{{ c=$(cat <<< {name}); $c; }}",
        lambda: f"if c={name}; then $c; fi",
        lambda: f"c={name} && $c {data}",
        lambda: f"c={data} true; c={name}; $c",
        lambda: f"{{ c={name}; }}; ( $c )",
        lambda: f"[[ {name} =~ c.* ]] && $BASH_REMATCH",
        lambda: f": {name}; $_",
        lambda: f"( f() {{ {name}; }}; export -f f; bash -c f )",
        lambda: f"( f() {{ {name}; }}; trap f EXIT )",
        lambda: f"( f() {{ {name}; }}; c=f; $c )",
    ]
    return tuple(choices)
