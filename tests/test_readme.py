"""The README's code runs as it stands, and prints what it says."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
CODE = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_the_declaration_in_the_readme():
    code = CODE[0]
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["episodes"].states.shape == (100, 5)
    claimed = re.search(r"\ntiger\n((?:# .*\n)+)", code)
    assert claimed is not None
    assert repr(names["tiger"]) == claimed.group(1).replace("# ", "", 1).replace("\n#", "\n").rstrip().replace("\n   ", "\n  ")


def test_fitting_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(CODE[1], "README.md", "exec"), names)
    assert len(names["episodes"]) == 100
    assert names["belief"].method == names["homdp_ppl"].posterior(names["world"].homdp, []).method == "conjugate"


def test_beyond_tables():
    names = {}
    exec(compile(CODE[2], "README.md", "exec"), names)
    assert names["plan"].value <= names["plan"].upper <= names["plan"].value + 0.05
    assert names["run"].state.memory.alive.emissions[-1]
    assert len(CODE) == 3
