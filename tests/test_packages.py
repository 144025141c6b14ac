"""Each package says in `__all__` which of its modules other packages may import, and imports nothing itself."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sandboxmcp"


def module_name(file: Path) -> str:
    """`sandboxmcp/store/lines.py` is `sandboxmcp.store.lines`, a package's `__init__.py` the package."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): ast.parse(file.read_text(encoding="utf-8")) for file in sorted(PACKAGE.rglob("*.py"))}
PACKAGES = [module_name(file.parent / "__init__.py") for file in sorted(PACKAGE.rglob("__init__.py"))][1:]


def imported(tree: ast.Module) -> set[str]:
    """The modules of ours that a module imports, also inside functions."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sandboxmcp"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
    return found


def imported_from_outside() -> dict[str, set[str]]:
    """For each package the names in it that modules outside of it import."""
    names: dict[str, set[str]] = defaultdict(set)
    for importer, tree in MODULES.items():
        for module in imported(tree):
            parts = module.split(".")
            for length in range(2, len(parts)):
                package = ".".join(parts[:length])
                if not f"{importer}.".startswith(f"{package}."):
                    names[package].add(parts[length])
    return names


def public(package: str) -> set[str]:
    """The names in a package's `__all__`."""
    for node in MODULES[package].body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def test_there_are_packages_to_look_at() -> None:
    assert len(PACKAGES) >= 10


def test_other_packages_import_only_what_a_package_makes_public() -> None:
    used = imported_from_outside()
    assert {package: used[package] - public(package) for package in PACKAGES if used[package] - public(package)} == {}


def test_what_is_public_exists_and_somebody_uses_it() -> None:
    used = imported_from_outside()
    assert {package: public(package) - used[package] for package in PACKAGES if public(package) - used[package]} == {}


def test_a_package_imports_nothing_itself() -> None:
    assert {package for package in PACKAGES if imported(MODULES[package])} == set()
