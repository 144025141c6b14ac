"""Reports that machines read: examples as JUnit XML, and examples and verdicts as SARIF 2.1.0 (OASIS)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from sandboxmcp.policy.trials import Trial

_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold at all."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something at a place in a file, for SARIF."""

    rule: str
    level: str
    message: str
    file: str
    line: int


def junit(trials: Sequence[Trial]) -> str:
    """One suite for each pack, one case for each example."""
    root = ElementTree.Element("testsuites", name="sandboxmcp policy")
    for pack in dict.fromkeys(trial.pack for trial in trials):
        own = [trial for trial in trials if trial.pack == pack]
        failed = sum(bool(trial.problem) for trial in own)
        suite = ElementTree.SubElement(root, "testsuite", name=pack, tests=str(len(own)), failures=str(failed), errors="0")
        for trial in own:
            name = f"{trial.rule} example {trial.number}"
            case = ElementTree.SubElement(suite, "testcase", classname=pack, name=name, file=str(trial.file), line=str(trial.line))
            if trial.problem:
                ElementTree.SubElement(case, "failure", message=_NO_XML.sub("?", trial.problem)).text = f"{trial.file}:{trial.line}"
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def findings_of(trials: Sequence[Trial]) -> list[Finding]:
    return [Finding(f"{t.pack}/{t.rule}", "error", t.problem, str(t.file), t.line) for t in trials if t.problem]


def sarif(findings: Sequence[Finding]) -> str:
    """One run; paths are relative to the working folder where they lie in it."""
    rules = [{"id": rule} for rule in dict.fromkeys(finding.rule for finding in findings)]
    driver = {"name": "sandboxmcp", "rules": rules}
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(finding) for finding in findings]}],
    }
    return json.dumps(document, indent=1)


def _result(finding: Finding) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": _uri(finding.file)}, "region": {"startLine": max(finding.line, 1)}}
    return {
        "ruleId": finding.rule,
        "level": finding.level,
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
    }


def _uri(file: str) -> str:
    path = Path(file)
    try:
        return path.absolute().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.absolute().as_uri()
