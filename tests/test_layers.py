"""Imports go down only, and importing the command line is cheap and silent."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lmlab

ROOT = Path(lmlab.__file__).parent
LAYERS = (
    {"core"},
    {"data"},
    {"models"},
    {"engine"},
    {"runs"},
    {"studies", "microscope", "interop"},
    {"reports", "serving", "course"},
    {"apps"},
)
HEIGHT = {package: height for height, layer in enumerate(LAYERS) for package in layer}
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything a file imports, also inside functions and under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = ".".join(path.relative_to(ROOT.parent).parts[: -node.level]) if node.level else ""
            module = ".".join(part for part in (home, node.module) if part)
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def allowed(package: str, name: str) -> bool:
    """May a file of `package` import `name`?"""
    if not name.startswith("lmlab.") and name != "lmlab":
        return True
    other = name.partition(".")[2].partition(".")[0]
    return other in ("__version__", package) or HEIGHT.get(other, len(LAYERS)) < HEIGHT[package]


def test_every_package_has_a_place():
    assert PACKAGES
    assert set(PACKAGES) <= HEIGHT.keys()
    assert sorted(path.name for path in ROOT.glob("*.py")) == ["__init__.py", "__main__.py"]


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_down_only(package):
    upward = [
        f"{path.relative_to(ROOT.parent)}:{line} imports {name}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, name in imports(path)
        if not allowed(package, name)
    ]
    assert upward == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f():\n    from lmlab.apps.cli import main", "lmlab.apps.cli.main"),
        ("if TYPE_CHECKING:\n    import lmlab.studies.plan", "lmlab.studies.plan"),
        ("from lmlab import reports", "lmlab.reports"),
        ("from ..studies import plan", "lmlab.studies.plan"),
    ],
)
def test_an_import_that_goes_up_is_noticed_wherever_it_hides(source, found, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path / "lmlab")
    path = tmp_path / "lmlab" / "runs" / "store.py"
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert [name for _, name in imports(path)] == [found]
    assert not allowed("runs", found)


def test_neighbours_on_one_layer_do_not_import_one_another():
    assert not allowed("studies", "lmlab.microscope.lens")
    assert not allowed("reports", "lmlab.serving.batching")
    assert allowed("reports", "lmlab.studies.study")
    assert allowed("core", "lmlab.__version__")
    assert not allowed("core", "lmlab")


def loaded_by(code: str, *arguments: object) -> tuple[set[str], str]:
    """The modules a fresh Python has loaded after the code, and what it printed."""
    ask = f"import sys\ntry:\n    {code}\nexcept SystemExit: pass\nprint('\\n' + ' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", ask, *map(str, arguments)], capture_output=True, text=True, check=True, timeout=60
    )
    printed, _, modules = done.stdout.rstrip("\n").rpartition("\n")
    return set(modules.split()), printed + done.stderr


def test_importing_the_command_line_is_silent_and_loads_nothing_heavy():
    modules, printed = loaded_by("import lmlab.apps.cli")
    assert "lmlab.apps.cli" in modules
    assert not modules & {"torch", "numpy", "sqlalchemy", "matplotlib", "rich.console"}
    assert printed.strip() == ""


def test_listing_runs_does_not_wait_for_torch(tmp_path):
    modules, printed = loaded_by("import lmlab.apps.cli as cli; cli.main()", "runs", "list", "--lab", tmp_path)
    assert "No runs yet" in printed
    assert not modules & {"torch", "matplotlib"}
