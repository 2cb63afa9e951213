"""Model files of other tools. ``.POMDP`` is Cassandra's format; its grammar is in grammar.py, the conventions in reading.py."""

from homdp_ppl.formats.reading import PomdpFile as PomdpFile
from homdp_ppl.formats.reading import read_file as read_file
from homdp_ppl.formats.reading import read_pomdp as read_pomdp
from homdp_ppl.formats.writing import write_pomdp as write_pomdp
