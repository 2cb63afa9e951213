"""The documentation: all public names are listed, code runs with the shown output, links work.

A Python block whose first line is ``# name.py`` is also written to that file, for later commands. A
text block is the exact output of the block before it. Blocks after a line ``% not run`` are skipped
because they need a cluster.
"""

import contextlib
import importlib
import inspect
import io
import re
import shlex
import sys
from functools import reduce
from pathlib import Path

import pytest

import homdp_ppl
from homdp_ppl.cli.main import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    if not path.is_relative_to(DOCS / "tutorials") and "_build" not in path.parts
)
BLOCK = re.compile(
    r"(?P<skip>^% not run[^\n]*\n+)?^```(?P<kind>python|console|text)\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@pytest.fixture
def scripts(monkeypatch):
    """The scripts of `make docs`, imported as modules."""
    monkeypatch.syspath_prepend(str(DOCS))
    names = ("api_pages", "docstrings", "draw_map", "notebooks")
    yield [importlib.import_module(name) for name in names]
    for name in names:
        sys.modules.pop(name)


LONG = ("compare_declarations", "missing_states", "reproduction")  # half a minute each


def pages_with_code():
    """All pages with code; long ones are slow tests."""
    for page in PAGES:
        if "```python" in page.read_text():
            marks = [pytest.mark.slow] if page.stem in LONG else []
            yield pytest.param(page, id=page.stem, marks=marks)


@pytest.mark.parametrize("page", list(pages_with_code()))
def test_code(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    printed = ""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        kind, code = block["kind"], block["code"]
        if block["skip"]:
            printed = ""
        elif kind == "text":
            assert printed.rstrip() == code.rstrip()
        else:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                run_python(page, code, names) if kind == "python" else run_commands(code)
            printed = out.getvalue()


def run_python(page, code, names):
    file = re.match(r"# (\w+\.py)\n", code)
    if file:
        Path(file[1]).write_text(code, encoding="utf-8")
    exec(compile(code, page.name, "exec"), names)


def run_commands(code):
    for line in re.findall(r"^\$ homdp (.*)$", code, re.MULTILINE):
        command, _, _ = line.partition("  #")
        assert main(shlex.split(command)) == 0, line


def test_every_public_name_is_listed(scripts, tmp_path):
    api_pages = scripts[0]
    api_pages.write(tmp_path)
    pages = "\n".join(page.read_text() for page in tmp_path.glob("*.rst"))
    entries = re.findall(r"^\.\. (?:auto\w+|py:data):: (\S+)", pages, re.MULTILINE)
    assert len(entries) == len(set(entries))
    modules = [
        homdp_ppl,
        *(part for name in homdp_ppl.__all__ if inspect.ismodule(part := getattr(homdp_ppl, name))),
    ]
    explained = {id(find(entry)) for entry in entries}
    for module in modules:
        for name in set(module.__all__) - {"__version__"}:
            assert (
                inspect.ismodule(getattr(module, name)) or id(getattr(module, name)) in explained
            ), f"{module.__name__}.{name}"


def find(path):
    return reduce(getattr, path.split(".")[1:], homdp_ppl)


def test_names_at_the_root_have_a_theme(scripts, tmp_path):
    scripts[0].write(tmp_path)
    assert "More\n----" not in (tmp_path / "homdp_ppl.rst").read_text(), (
        "add the new name to THEMES in docs/api_pages.py"
    )


def test_constants_are_explained(scripts):
    api_pages = scripts[0]
    constants = {home for home in api_pages.homes().values() if not callable(find(home))}
    assert constants == set(api_pages.CONSTANTS)


def test_fields_are_documented_by_their_comments(scripts):
    assert scripts[1].comments(homdp_ppl.POMDP)["initial"].split() == ["(X,)", "rho(x)"]
    assert scripts[1].escape("T(x'|x, a) of ``a | b``") == r"T(x'\|x, a) of ``a | b``"


def test_tutorials_are_listed(scripts, tmp_path):
    scripts[3].copy(ROOT / "tutorials", tmp_path)
    listed = re.findall(r"<(\d\d_\w+)>", (tmp_path / "README.md").read_text())
    assert listed == sorted(path.stem for path in (ROOT / "tutorials").glob("*.ipynb"))


def test_the_map_matches_the_code(scripts):
    """It is drawn from the imports; packages without a layer and upward imports are errors."""
    draw_map = scripts[2]
    packages, rows = draw_map.imports(), draw_map.layers()
    draw_map.check(packages, rows)
    assert packages.has_edge("study", "learning")
    with pytest.raises(ValueError, match=r"not in both the code and the layers: \{'cli'\}"):
        draw_map.check(packages, rows[1:])
    packages.add_edge("storage", "learning")
    with pytest.raises(ValueError, match=r"point downwards: \[\('storage', 'learning'\)\]"):
        draw_map.check(packages, rows)


def test_the_map_is_reproducible(scripts, tmp_path):
    for name in ("first.svg", "second.svg"):
        scripts[2].write(tmp_path / name)
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_stations_of_the_map_exist(scripts):
    draw_map = scripts[2]
    for step in (*draw_map.BEFORE, *draw_map.LOOP, *draw_map.AFTER):
        find(f"homdp_ppl.{re.split('[:,]', step.gives)[0]}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_exist(page):
    """Links to the map and the API reference are ignored: the build generates these files."""
    made = ("_static/map.svg", "api/generated")
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        path = (page.parent / link).resolve()
        if not link.startswith("http") and not any(
            path.is_relative_to(DOCS / part) for part in made
        ):
            assert path.exists(), link
