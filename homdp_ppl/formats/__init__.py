"""Read and write model files of other tools: ``.POMDP``, Cassandra's format.

``read_pomdp`` describes the conventions.
"""

from homdp_ppl.formats.reading import PomdpFile, read_file, read_pomdp
from homdp_ppl.formats.writing import write_pomdp

__all__ = [
    "PomdpFile",
    "read_file",
    "read_pomdp",
    "write_pomdp",
]


def __dir__() -> list[str]:
    return __all__
