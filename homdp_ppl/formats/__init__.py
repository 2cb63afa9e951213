"""Read and write files of other tools.

Models: ``.POMDP``, Cassandra's format; ``read_pomdp`` describes the conventions. Recorded episodes:
CSV and parquet, see ``read_log``. Plans: alpha-vectors of other solvers, see ``write_vectors``.
"""

from homdp_ppl.formats.logs import read_log
from homdp_ppl.formats.reading import PomdpFile, read_file, read_pomdp
from homdp_ppl.formats.vectors import write_vectors
from homdp_ppl.formats.writing import write_pomdp

__all__ = [
    "PomdpFile",
    "read_file",
    "read_log",
    "read_pomdp",
    "write_pomdp",
    "write_vectors",
]


def __dir__() -> list[str]:
    return __all__
