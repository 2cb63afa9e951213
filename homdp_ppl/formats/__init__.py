"""Read and write files of other tools: models as ``.POMDP``, Cassandra's format, and plans as
alpha-vectors.

``read_pomdp`` describes the conventions.
"""

from homdp_ppl.formats.reading import PomdpFile, read_file, read_pomdp
from homdp_ppl.formats.vectors import write_vectors
from homdp_ppl.formats.writing import write_pomdp

__all__ = [
    "PomdpFile",
    "read_file",
    "read_pomdp",
    "write_pomdp",
    "write_vectors",
]


def __dir__() -> list[str]:
    return __all__
