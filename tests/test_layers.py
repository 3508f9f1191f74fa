"""The package is built as its map says: no module imports one of a higher layer."""

import ast
import re
from pathlib import Path

import rewritelog
import tracebigsim

LAYERS = re.findall(r"^- `(\w+)`", rewritelog.__doc__ or "", re.MULTILINE)
"""The package's modules and folders, lowest first, as its docstring lists them."""

MAY_NOT_KNOW = {
    "formats": {"models"},
    "output": {"models"},
    "checking": {"models", "timings"},
    "synthesis": {"models", "timings", "checking"},
    "converting": {"models", "timings", "checking", "synthesis"},
    "rewriting": {"synthesis", "converting"},
    "replaying": {"checking", "synthesis", "converting"},
    "exporting": {"models", "checking", "synthesis", "converting", "rewriting"},
    "inspection": {"models", "timings", "rewriting"},
    "diffing": {"models", "timings", "rewriting"},
    "sampling": {"rewriting", "inspection", "diffing"},
    "evaluation": {"rewriting", "inspection", "diffing", "sampling"},
}


ROOT = Path(__file__).parents[1]


def map_of(text: str) -> list[str]:
    """The lines of a text that each describe a layer."""
    return [line for line in text.splitlines() if line.startswith("- `")]


def at_import(tree: ast.Module) -> list[ast.AST]:
    """The imports that are made when a module is imported: not those in functions or for types."""
    return [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]


def imports_of(path: Path) -> set[str]:
    """The layers of this project that a module imports.

    Commands are declared below the jobs that take them, and call these: of commands it is what they
    import before they are run.
    """
    imported = set()
    tree = ast.parse(path.read_text())
    for node in at_import(tree) if path.parent.name == "commands" else ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names = [node.module or ""]
            if node.module == "rewritelog":
                names = [f"rewritelog.{alias.name}" for alias in node.names]
        for name in names:
            first, _, rest = name.partition(".")
            if first == "tracebigsim":
                imported.add("tracebigsim")
            if first == "rewritelog" and rest:
                imported.add(rest.split(".")[0])
    return imported & {*LAYERS, "tracebigsim"}


def test_every_part_of_the_package_has_a_layer() -> None:
    folder = Path(rewritelog.__file__).parent
    parts = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert parts - {"__init__", "__main__", "__pycache__"} == set(LAYERS)


def test_docstring_and_architecture_page_have_the_same_map() -> None:
    lines = map_of(rewritelog.__doc__ or "")
    page = ROOT / "docs" / "architecture.md"
    assert map_of(page.read_text(encoding="utf-8")) == lines, f"{page} and rewritelog/__init__.py"


def test_no_import_runs_up() -> None:
    folder = Path(rewritelog.__file__).parent
    for path in folder.rglob("*.py"):
        layer = path.relative_to(folder).parts[0].removesuffix(".py")
        if layer not in LAYERS:
            continue
        imported = imports_of(path)
        allowed = {*LAYERS[: LAYERS.index(layer) + 1], "tracebigsim"}
        assert imported <= allowed - MAY_NOT_KNOW.get(layer, set()), path


def test_tracebigsim_imports_nothing_of_rewritelog() -> None:
    for path in Path(tracebigsim.__file__).parent.rglob("*.py"):
        assert imports_of(path) <= {"tracebigsim"}, path


def test_formats_do_not_know_each_other() -> None:
    formats = Path(rewritelog.__file__).parent / "formats"
    modules = list(formats.rglob("*.py"))
    names = {path.relative_to(formats).parts[0].removesuffix(".py") for path in modules}
    names -= {"__init__", "files", "opening", "traces"}
    assert names >= {"bgtrace", "chakra"}
    for path in modules:
        own = path.relative_to(formats).parts[0].removesuffix(".py")
        text = path.read_text() if own in names else ""
        others = names - {own}
        assert not [name for name in others if f"rewritelog.formats.{name}" in text], path


def test_no_constant_hides_another_one_of_its_name() -> None:
    """Tuning and families have dozens: a second assignment would silently replace the first."""
    for package in (rewritelog, tracebigsim):
        for path in Path(package.__path__[0]).rglob("*.py"):
            constants = [
                name.id
                for statement in ast.parse(path.read_text()).body
                if isinstance(statement, ast.Assign | ast.AnnAssign)
                for name in ast.walk(statement)
                if isinstance(name, ast.Name)
                and isinstance(name.ctx, ast.Store)
                and name.id.isupper()
            ]
            assert len(constants) == len(set(constants)), f"{path}: {constants}"
