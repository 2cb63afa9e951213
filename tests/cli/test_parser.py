"""The parser knows rules and planners without importing them."""

import argparse
from importlib import import_module

import pytest

from homdp_ppl.cli.options import factories
from homdp_ppl.cli.parser import make_parser
from homdp_ppl.explorers import EXPLORERS
from homdp_ppl.planners import PLANNERS
from homdp_ppl.study import Study, defaults
from tests.children import finish, spawn

HELP = """
from homdp_ppl.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0, end.code
print({"jax", "numpyro", "numpy", "rich", "matplotlib"} & sys.modules.keys())
"""


def commands():
    (action,) = (
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return action.choices


def test_file_names_match_the_registries():
    assert factories("explorers") == sorted(EXPLORERS)
    assert factories("planners") == sorted(PLANNERS)
    assert set(defaults.CLASSES) < set(EXPLORERS)
    assert Study(("tiger",)).explorers == defaults.EXPLORERS


@pytest.mark.parametrize("name", commands())
def test_every_command_has_a_function(name):
    module, _, function = commands()[name].get_default("run").partition(":")
    assert callable(getattr(import_module(f"homdp_ppl.cli.{module}"), function))


@pytest.mark.parametrize("line", [["--help"], *([name, "--help"] for name in commands())])
def test_help_does_not_import_jax(line):
    out = finish(spawn(HELP, *line))
    assert out.startswith("usage: homdp")
    assert out.splitlines()[-1] == "set()"


def test_help_lists_rules_and_planners(capsys):
    with pytest.raises(SystemExit):
        make_parser().parse_args(["learn", "--help"])
    words = capsys.readouterr().out.replace("\n", " ")
    assert all(f" {name}," in words for name in {*factories("planners"), "greedy", "tight"})
    assert "hop_v" not in words
