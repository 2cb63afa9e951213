"""The public API: completion, docstrings with examples, and complete type hints."""

import doctest
import inspect

import pytest

import homdp_ppl

MODULES = [
    homdp_ppl,
    *(part for name in homdp_ppl.__all__ if inspect.ismodule(part := getattr(homdp_ppl, name))),
]


def public():
    """Every public function and class, once."""
    found = {}
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                found.setdefault(thing, f"{module.__name__.removeprefix('homdp_ppl.')}.{name}")
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_completion_shows_public_names_only(module):
    assert dir(module) == sorted(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    assert not [name for name in module.__all__ if name.startswith("_") and name != "__version__"]


@pytest.mark.parametrize("thing", public(), ids=public().values())
def test_docstrings_have_an_example(thing):
    """Neither an inherited docstring nor the default docstring of a dataclass counts."""
    words = thing.__doc__ or ""
    assert not words.startswith(f"{thing.__name__}("), "no docstring"
    assert doctest.DocTestParser().get_examples(words), "no example"


@pytest.mark.parametrize("thing", public(), ids=public().values())
def test_type_hints_are_complete(thing):
    functions = (
        [thing]
        if inspect.isfunction(thing)
        else [part for part in vars(thing).values() if inspect.isfunction(part)]
    )
    for function in functions:
        if not function.__name__.startswith("_") or function.__name__ == "__init__":
            signature = inspect.signature(function)
            bare = [
                name
                for name, p in signature.parameters.items()
                if p.annotation is p.empty and name not in ("self", "cls")
            ]
            assert not bare, (function.__qualname__, bare)
            assert signature.return_annotation is not signature.empty, function.__qualname__
