"""Imports: `import homdp_ppl` loads no slow packages and works without POSIX modules."""

import ast
import inspect
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import homdp_ppl
from homdp_ppl import report, study

ROOT = Path(homdp_ppl.__file__).parents[1]
DRAWING = "matplotlib gymnasium joblib loky distributed rich pandas graphviz"
HEAVY = f"jax numpyro numba scipy xarray {DRAWING}"
ON_POSIX_ONLY = """
import os, pkgutil, signal, sys
import distributed, gymnasium, jax, loky, matplotlib.pyplot, numba, numpyro, rich.progress, xarray
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for owner, names in (
    (os, "pread pwrite O_CLOEXEC fork sched_getaffinity getuid killpg"), (signal, "pthread_sigmask")
):
    for name in names.split():
        delattr(owner, name)
import homdp_ppl
found = [module.name for module in pkgutil.walk_packages(homdp_ppl.__path__, "homdp_ppl.")]
for name in found:
    __import__(name)
print(len(found))
"""


def child(code, folder=ROOT):
    """The output of Python code in a new process."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded(code, names=HEAVY, folder=ROOT):
    """The packages, of these names, that a new process has loaded after some code."""
    report = f"import sys\nprint(*set({names.split()}) & sys.modules.keys())"
    return set(child(f"{code}\n{report}", folder).split())


def test_importing_the_package_loads_no_heavy_modules():
    assert loaded("import homdp_ppl, homdp_ppl.report, homdp_ppl.study") == set()


def test_an_eager_import_is_detected(tmp_path):
    """Planted bug: a copy of the package that imports rich."""
    copy = tmp_path / "homdp_ppl"
    copy.mkdir()
    shutil.copy(ROOT / "homdp_ppl" / "_lazy.py", copy)
    source = (ROOT / "homdp_ppl" / "__init__.py").read_text()
    (copy / "__init__.py").write_text(f"{source}\nimport rich\n")
    assert loaded("import homdp_ppl", folder=tmp_path) == {"rich"}


def test_computing_loads_neither_matplotlib_nor_gymnasium():
    """For all public names except ``gym`` and the contents of ``report`` and ``study``."""
    code = "import homdp_ppl\n[getattr(homdp_ppl, n) for n in homdp_ppl.__all__ if n != 'gym']"
    assert loaded(code, DRAWING) == set()
    assert "matplotlib" in loaded("from homdp_ppl.report import draw_curves", DRAWING)


def test_gymnasium_ids_are_registered_by_the_package_gym():
    code = "import gymnasium, homdp_ppl{}\nprint('homdp/Tiger-v0' in gymnasium.registry)"
    assert child(code.format("")) == "False\n"
    assert child(code.format(".gym")) == "True\n"
    assert child(code.format(".models.environments")) == "True\n"


@pytest.mark.parametrize("package", [homdp_ppl, report, study], ids=lambda p: p.__name__)
def test_type_checkers_see_the_same_names(package):
    """The imports under TYPE_CHECKING, ``_HOMES`` and ``__all__`` agree."""
    prefix = package.__name__
    seen = set()
    for node in ast.walk(ast.parse(inspect.getsource(package))):
        if isinstance(node, ast.ImportFrom) and node.module not in ("typing", "homdp_ppl._lazy"):
            home = node.module.removeprefix(prefix).removeprefix(".")
            seen |= {(home, name.name) for name in node.names}
    table = {(home, name) for home, names in package._HOMES.items() for name in names.split()}
    assert seen == table
    assert {name for _, name in table} == set(package.__all__) - {"__version__"}


def test_lazy_names_behave_like_imported_ones():
    assert pickle.loads(pickle.dumps(homdp_ppl.POMDP)) is homdp_ppl.POMDP
    assert "POMDP" in vars(homdp_ppl)
    with pytest.raises(AttributeError, match="module 'homdp_ppl' has no attribute 'POMPD'"):
        homdp_ppl.POMPD  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'lern'"):
        from homdp_ppl import lern  # noqa: F401


def test_every_module_can_be_imported_without_posix():
    assert int(child(ON_POSIX_ONLY)) > 150
