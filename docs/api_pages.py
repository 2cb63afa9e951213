"""Generate the reference: one page per public namespace, made from its ``__all__``.

New names appear automatically.
"""

import inspect
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_overloads

from docstrings import escape
from docutils import nodes
from sphinx.addnodes import pending_xref

import homdp_ppl

THEMES = {  # sections for the names at the root; other names are listed under "More"
    "Declaring": (
        "homdp",
        "tabular",
        "Kernels",
        "Real",
        "HOMDP",
        "World",
        "Spaces",
        "POMDP",
        "Sparse",
    ),
    "Acting": (
        "rollout",
        "uniform_policy",
        "Policy",
        "BatchPolicy",
        "GraphPolicy",
        "BlindPolicy",
        "FunctionPolicy",
        "Trajectory",
        "Episode",
        "Episodes",
        "Counts",
    ),
    "Planning": ("Plan", "make_plan"),
    "Learning": ("learn", "Reveal", "Run", "Mixture", "rank_labels", "LabelValue"),
    "Live systems": ("Agent", "LiveEpisode", "explain"),
    "Errors": (
        "HOMDPError",
        "Problem",
        "DeclarationError",
        "SpacesError",
        "ParameterError",
        "DataError",
        "InferenceError",
        "PlanningError",
        "PolicyError",
        "StorageError",
        "HindsightWarning",
        "OptimismWarning",
    ),
    "Precision": ("x64",),
}


def namespaces() -> dict[str, ModuleType]:
    """The public modules by full name; the root is last because it repeats names of the others."""
    parts = (getattr(homdp_ppl, name) for name in homdp_ppl.__all__)
    return {part.__name__: part for part in parts if inspect.ismodule(part)} | {
        "homdp_ppl": homdp_ppl
    }


@cache
def homes() -> dict[str, str]:
    """Where each public name is documented: in its namespace rather than at the root."""
    found: dict[int, str] = {}
    places: dict[str, str] = {}
    for path, module in namespaces().items():
        for name in module.__all__:
            thing = getattr(module, name)
            if not inspect.ismodule(thing) and name != "__version__":
                places[f"{path}.{name}"] = found.setdefault(id(thing), f"{path}.{name}")
    return places


def overloaded() -> set[str]:
    """The modules of public functions that have overloads."""
    public = (getattr(module, name) for module in namespaces().values() for name in module.__all__)
    return {
        thing.__module__
        for thing in public
        if inspect.isfunction(thing) and get_overloads(inspect.unwrap(thing))
    }


def write(target: Path) -> None:
    """Write the pages that have changed, and remove pages of namespaces that no longer exist.

    Parameters
    ----------
    target
        The directory of the pages.
    """
    target.mkdir(parents=True, exist_ok=True)
    pages = {
        f"{path.removeprefix('homdp_ppl.')}.rst": page(path, module)
        for path, module in namespaces().items()
    }
    pages["namespaces.inc"] = contents()
    for old in target.iterdir():
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        file = target / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def contents() -> str:
    """A table of the namespaces, for the index page."""
    rows = {
        f":doc:`{path} <generated/{path.removeprefix('homdp_ppl.')}>`": module
        for path, module in sorted(namespaces().items())
    }
    return "\n".join(
        _table(
            {
                link: (inspect.getdoc(module) or "").removeprefix("homdp_ppl: ")
                for link, module in rows.items()
            }
        )
    )


def page(path: str, module: ModuleType) -> str:
    """The page of a namespace: its docstring, a table of its names, and their entries."""
    names = [name for name in module.__all__ if f"{path}.{name}" in homes()]
    parts = [
        path,
        "=" * len(path),
        "",
        f".. py:module:: {path}",
        "",
        *map(escape, (inspect.getdoc(module) or "").splitlines()),
        "",
    ]
    themes = _themes(names) if path == "homdp_ppl" else {"": names}
    for theme, chosen in themes.items():
        if theme:
            parts += [theme, "-" * len(theme), ""]
        parts += [*_glance(path, module, chosen), ""]
        for name in chosen:
            if homes()[f"{path}.{name}"] == f"{path}.{name}":
                parts += [*_entry(f"{path}.{name}", getattr(module, name)), ""]
    return "\n".join(parts)


def _themes(names: list[str]) -> dict[str, list[str]]:
    here = {theme: [name for name in listed if name in names] for theme, listed in THEMES.items()}
    elsewhere = [name for name in names if homes()[f"homdp_ppl.{name}"] != f"homdp_ppl.{name}"]
    placed = {name for listed in here.values() for name in listed} | set(elsewhere)
    more = [name for name in names if name not in placed]
    return {
        **here,
        **({"More": more} if more else {}),
        "Shortcuts to names in namespaces": elsewhere,
    }


def _glance(path: str, module: ModuleType, names: list[str]) -> list[str]:
    """A table of names with the first paragraphs of their docstrings."""
    rows = {}
    for name in names:
        home, thing = homes()[f"{path}.{name}"], getattr(module, name)
        rows[f":py:obj:`~{home}`"] = (
            (inspect.getdoc(thing) or "") if callable(thing) else CONSTANTS.get(home, "")
        )
    return _table(rows)


def _table(rows: dict[str, str]) -> list[str]:
    """A table of links, each with the first paragraph of its text."""
    lines = [".. list-table::", "   :class: glance", "   :widths: 30 70", ""]
    for link, text in rows.items():
        first = escape(text.partition("\n\n")[0].replace("\n", " "))
        lines += [f"   * - {link}", f"     - {first[:1].upper()}{first[1:]}"]
    return lines


CONSTANTS = {
    "homdp_ppl.explorers.EXPLORERS": "The rules by name.",
    "homdp_ppl.models.MODELS": "The worlds of the model zoo by name.",
    "homdp_ppl.planners.PLANNERS": "The planners by name.",
    "homdp_ppl.report.COLOURS": "The colours of rules in figures, in order.",
}


def _entry(home: str, thing: Any) -> list[str]:
    if inspect.isclass(thing):
        return [f".. autoclass:: {home}"]
    if callable(thing):
        return [f".. autofunction:: {home}"]
    keys = ", ".join(f"``{key}``" for key in thing) + "." if isinstance(thing, dict) else ""
    return [f".. py:data:: {home}", "", f"   {CONSTANTS.get(home, '')} {keys}".rstrip()]


def find(written: str) -> str | None:
    """Where a name is documented.

    The name is given in full, relative to the root, or alone if it is unique.
    """
    path = written if written.startswith("homdp_ppl.") else f"homdp_ppl.{written}"
    if path in homes():
        return homes()[path]
    alike = {home for home in homes().values() if home.rpartition(".")[2] == written}
    return alike.pop() if len(alike) == 1 else None


def link(app: Any, document: Any) -> None:
    """Link public names that a page writes as code to their documentation."""
    for node in list(document.findall(nodes.literal)):
        home = find(node.astext().partition("(")[0])
        if home and not isinstance(node.parent, nodes.reference | pending_xref):
            options = {
                "refdomain": "py",
                "reftype": "obj",
                "refexplicit": True,
                "refdoc": app.env.docname,
            }
            node.replace_self(pending_xref("", node.deepcopy(), reftarget=home, **options))


def resolve(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Resolve references to names that are abbreviated or written with their private module."""
    if node.get("refdomain") != "py":
        return None
    home = find(node["reftarget"]) or find(node["reftarget"].rpartition(".")[2])
    if home is None:
        return None
    domain, document = env.get_domain("py"), node.get("refdoc", env.docname)
    return domain.resolve_xref(env, document, app.builder, "obj", home, node, contnode)
