"""The wheel and the source distribution: contents, and that the wheel works when installed."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import homdp_ppl

ROOT = Path(__file__).parents[1]
USE = """
import homdp_ppl, homdp_ppl.models, homdp_ppl.planners, homdp_ppl.cli, jax
assert "site-packages" in homdp_ppl.__file__, homdp_ppl.__file__
world = homdp_ppl.models.load("tiger")
episode = homdp_ppl.rollout(jax.random.key(0), world, homdp_ppl.uniform_policy(world))
print(episode.states.shape)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A clone with uncommitted changes."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a clone")
    source = tmp_path_factory.mktemp("packaging") / "source"
    run("git", "clone", "--quiet", str(ROOT), str(source))
    listed = run(
        "git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"
    ).splitlines()
    for name in listed:
        if (ROOT / name).is_file() and not (ROOT / name).is_symlink():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    return source


@pytest.fixture(scope="module")
def wheel(source):
    return build(source, "--wheel", "*.whl")


def build(source, kind, pattern):
    folder = source.parent / kind.strip("-")
    run(sys.executable, "-m", "build", kind, "--outdir", str(folder), str(source))
    (built,) = folder.glob(pattern)
    return built


def run(*command: str, cwd: Path | None = None) -> str:
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=plain)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def modules(folder: str) -> set[str]:
    found = (path.relative_to(ROOT / folder) for path in (ROOT / folder).glob("**/*.py"))
    return {f"homdp_ppl/{path}" for path in found if not (ROOT / folder / path.parent).is_symlink()}


def test_contents(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = modules("homdp_ppl") | {"homdp_ppl/py.typed"}
    for folder in ("models", "planners"):
        expected |= {name.replace("homdp_ppl/", f"homdp_ppl/{folder}/") for name in modules(folder)}
    assert names == expected  # nothing at the top level but homdp_ppl
    metadata = next(n for n in zipfile.ZipFile(wheel).namelist() if n.endswith("METADATA"))
    assert "Requires-Python: >=3.11" in zipfile.ZipFile(wheel).read(metadata).decode()


def test_the_lowest_versions_are_the_declared_bounds():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    lines = (ROOT / "constraints" / "lowest.txt").read_text().splitlines()
    lowest = [line for line in lines if not line.startswith("#")]
    assert lowest == [bound.replace(">=", "==") for bound in declared]


def test_all_files_have_the_same_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert homdp_ppl.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", version]


@pytest.mark.slow
def test_works_in_a_fresh_environment(wheel, tmp_path):
    run(sys.executable, "-m", "venv", str(tmp_path / "env"))
    python = str(tmp_path / "env" / "bin" / "python")
    pinned = ROOT / "constraints" / f"python3.{min(sys.version_info.minor, 12)}.txt"
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint")
    pip = (*pip, str(pinned))
    run(python, *pip, str(wheel))
    assert run(python, "-W", "error", "-c", USE, cwd=tmp_path).strip() == "(5,)"
    assert "growl" in run(str(tmp_path / "env" / "bin" / "homdp"), "play", "tiger", cwd=tmp_path)


@pytest.mark.slow
def test_the_source_distribution_has_tests_and_documentation(source):
    with tarfile.open(build(source, "--sdist", "*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    listed = run("git", "-C", str(ROOT), "ls-files", "tests", "docs", "models", "planners")
    assert set(listed.splitlines()) <= names
    assert {"CHANGELOG.md", "Makefile", "tutorials/execute.py", "constraints/lowest.txt"} <= names
