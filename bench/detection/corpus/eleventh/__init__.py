"""The eleventh set: 28 jobs, filed by subject. The head of each file names its jobs; what the names of their faults mean stands in WORDS of
tenth.support and of support.

Its single runs have not been looked at by anybody who writes a rule."""
from . import frameworks, pairs, pictures, rewards, signals, tables, trees, words

PARTS = (pictures, words, signals, pairs, tables, rewards, frameworks, trees)
