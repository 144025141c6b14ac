"""Source code is cut by its symbols, each named by the path to it."""

from __future__ import annotations

import pytest

from sandboxmcp.store.chunking.forms import chunked
from sandboxmcp.store.chunking.symbols import language_of
from sandboxmcp.store.lines import numbered_lines

PYTHON = """\
import os


class Reader:
    limit = 3

    @property
    def size(self):
        return 1


def main():
    pass
"""
GO = """\
package main

import "fmt"

// Run does it.
func Run(x int) int {
	return x
}

func (s *Server) Stop() {
}
"""
RUST = """\
use std::io;

pub struct Point { x: i32 }

impl Point {
    pub fn new() -> Self {
        Point { x: 1 }
    }
}
"""
JAVASCRIPT = """\
import a from 'a';

export function load(x) {
  return x;
}

const save = (x) => {
  return x;
};

class Box {
  open() {
  }
}
"""
TYPESCRIPT = """\
import { a } from 'a';
export interface Shape {
  area(): number;
}

export function draw(s: Shape): void {
  s.area();
}
"""
RUBY = """\
require 'set'

module Shop
  class Cart
    def total
      1
    end
  end
end
"""
PHP = """\
<?php
namespace App;

class Cart {
    public function total($x) {
        return $x;
    }
}
"""
CSHARP = """\
using System;

namespace Shop
{
    public class Cart
    {
        public int Total()
        {
            return 1;
        }
    }
}
"""
PERL = """\
use strict;
use warnings;

sub add {
  my ($x) = @_;
  return $x;
}

add(1);
"""
BASH = """\
#!/bin/bash
set -e

build() {
  make
}

if [ -f x ]; then
  build
fi
"""
ELIXIR = """\
defmodule Shop.Cart do
  def total(x) do
    x
  end

  defp one do
    1
  end
end
"""
POWERSHELL = """\
function Get-Total {
  param($x)
  return $x
}

$all = Get-Total 1
"""
CODE = {
    "python": (PYTHON, [("", 1, 3), ("Reader", 4, 6), ("Reader › size", 7, 9), ("", 10, 11), ("main", 12, 13)]),
    "go": (GO, [("", 1, 4), ("Run", 5, 8), ("", 9, 9), ("Stop", 10, 11)]),
    "rust": (RUST, [("", 1, 2), ("Point", 3, 3), ("", 4, 4), ("Point", 5, 5), ("Point › new", 6, 8), ("Point", 9, 9)]),
    "javascript": (
        JAVASCRIPT,
        [
            ("", 1, 2),
            ("load", 3, 5),
            ("", 6, 6),
            ("save", 7, 9),
            ("", 10, 10),
            ("Box", 11, 11),
            ("Box › open", 12, 13),
            ("Box", 14, 14),
        ],
    ),
    "typescript": (TYPESCRIPT, [("", 1, 1), ("Shape", 2, 4), ("", 5, 5), ("draw", 6, 8)]),
    "ruby": (
        RUBY,
        [("", 1, 2), ("Shop", 3, 3), ("Shop › Cart", 4, 4), ("Shop › Cart › total", 5, 7), ("Shop › Cart", 8, 8), ("Shop", 9, 9)],
    ),
    "php": (PHP, [("", 1, 3), ("Cart", 4, 4), ("Cart › total", 5, 7), ("Cart", 8, 8)]),
    "csharp": (
        CSHARP,
        [
            ("", 1, 2),
            ("Shop", 3, 4),
            ("Shop › Cart", 5, 6),
            ("Shop › Cart › Total", 7, 10),
            ("Shop › Cart", 11, 11),
            ("Shop", 12, 12),
        ],
    ),
    "perl": (PERL, [("", 1, 3), ("add", 4, 7), ("", 8, 9)]),
    "bash": (BASH, [("", 1, 3), ("build", 4, 6), ("", 7, 10)]),
    "elixir": (
        ELIXIR,
        [("Shop.Cart", 1, 1), ("Shop.Cart › total", 2, 4), ("Shop.Cart", 5, 5), ("Shop.Cart › one", 6, 8), ("Shop.Cart", 9, 9)],
    ),
    "powershell": (POWERSHELL, [("Get-Total", 1, 4), ("", 5, 6)]),
}


def _cut(text: str) -> list[tuple[str, int, int]]:
    found = chunked(numbered_lines([text.encode()]), "code")
    return [(chunk.title, chunk.lines[0].number, chunk.lines[-1].number) for chunk in found]


@pytest.mark.parametrize("language", CODE)
def test_code_is_cut_by_its_symbols(language):
    text, chunks = CODE[language]
    assert (language_of(text), _cut(text)) == (language, chunks)


def test_more_code_than_is_parsed_is_cut_like_any_text():
    assert {title for title, _, _ in _cut(PYTHON * 10_000)} == {""}


BROKEN = """\
import os

def alpha(
    a,
) -> int:
    print "of another version"

class Beta:
    '''Words of it.
    '''

    def gamma(self):
        if x =
        def inner():
            pass

    async def delta(self):
        pass

# what eps is for
@cached
def eps(:
    return 1
x = 2
"""


def test_python_that_does_not_parse_is_cut_by_its_indents() -> None:
    assert _cut(BROKEN) == [
        ("", 1, 2),
        ("alpha", 3, 6),
        ("", 7, 7),
        ("Beta", 8, 11),
        ("Beta › gamma", 12, 15),
        ("Beta", 16, 16),
        ("Beta › delta", 17, 18),
        ("", 19, 19),
        ("eps", 20, 23),
        ("", 24, 24),
    ]


def test_a_part_of_a_python_file_has_its_symbols() -> None:
    part = "        return 1\n\n    def size(self):\n        return 2\n\nclass Writer:\n    def write(self):\n        pass\n"
    assert [title for title, _, _ in _cut(part)] == ["", "size", "", "Writer", "Writer › write"]


AROUND = {
    "ruby": (
        "class Herd < Base\n  def run\n    1\n  end\n\n  def stop(\n    x =\n  end\n\n  def sleep?\n    2\n  end\nend\n",
        {"Herd", "Herd › run", "Herd › stop", "Herd › sleep?"},
    ),
    "javascript": (
        "const x = require('x');\nfunction run(a) {\n  return a;\n}\n\nfunction stop( {\n  return +;\n}\n\nclass Herd {\n"
        "  sleep() { if (x { return }\n  }\n}\n\nfunction eat() {\n  return 1;\n}\n",
        {"run", "stop", "Herd", "eat"},
    ),
    "php": (
        "<?php\nnamespace X;\nclass Herd {\n  public function run($a) {\n    return $a;\n  }\n  public static function stop( {\n"
        "    $x = ;\n  }\n"
        "  function sleep($b) {\n    if ($x {\n    }\n  }\n}\n",
        {"Herd", "Herd › run", "Herd › stop", "Herd › sleep"},
    ),
    "csharp": (
        "using System;\nnamespace Zoo\n{\n  public class Herd\n  {\n    public int Run(int a)\n    {\n      return a;\n    }\n"
        "    public static int Stop(\n    {\n      int x = ;\n    }\n    private void Sleep() { if (x { } }\n  }\n}\n",
        {"Zoo", "Zoo › Herd", "Zoo › Herd › Run", "Zoo › Herd › Stop", "Zoo › Herd › Sleep"},
    ),
}


@pytest.mark.parametrize("language", AROUND)
def test_what_lies_around_an_error_keeps_its_symbols(language: str) -> None:
    text, titles = AROUND[language]
    assert titles <= {title for title, _, _ in _cut(text)}


@pytest.mark.parametrize("language", CODE)
def test_an_error_in_one_place_costs_no_symbol_elsewhere(language: str) -> None:
    text = CODE[language][0]
    titles = {title for title, _, _ in _cut(text)}
    assert titles <= {title for title, _, _ in _cut(text + "\n)) = ((\n")}
