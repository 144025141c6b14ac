"""Random shell scripts whose commands are all harmless recorders, and what of them bash really ran.

A command is `c` with a number of its own, which writes its name into a log. Words that must never run are `d` with a number. Every
script is made from its seed alone.
"""

import os
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

_BOUND_S = 300
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


def ran(scripts: list[str], folder: Path) -> list[set[str]]:
    """The commands that bash ran of each script: functions that write their name, in a folder of their own."""
    most = 2_000
    recorders = "".join(f"c{at}() {{ echo c{at} >&99; }}\n" for at in range(most))
    (folder / "env").write_text(f'exec 99>>"$LOG"\n{recorders}')
    for at, script in enumerate(scripts):
        (folder / f"{at}.sh").write_text(script)
    (folder / "drive").write_text(
        ". ./env\nmkdir -p here; cd here\n"
        f"for at in {{0..{len(scripts) - 1}}}; do (exec 99>../$at.log; . ../$at.sh; wait) </dev/null >/dev/null 2>&1; done\n"
    )
    environment = {"PATH": "/usr/bin:/bin", "LOG": str(folder / "log"), "LC_ALL": "C.UTF-8"}
    driver = subprocess.Popen(["bash", "drive"], cwd=folder, env=environment, start_new_session=True, stdin=subprocess.DEVNULL)
    try:
        driver.wait(_BOUND_S)
    except subprocess.TimeoutExpired:
        os.killpg(driver.pid, signal.SIGKILL)
        raise
    return [set((folder / f"{at}.log").read_text().split()) for at in range(len(scripts))]
