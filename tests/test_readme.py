"""The README's code runs as it stands, and prints what it says."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_declaration_in_the_readme():
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["episodes"].states.shape == (100, 5)
    claimed = re.search(r"\ntiger\n((?:# .*\n)+)", code)
    assert claimed is not None
    assert repr(names["tiger"]) == claimed.group(1).replace("# ", "", 1).replace("\n#", "\n").rstrip().replace("\n   ", "\n  ")
