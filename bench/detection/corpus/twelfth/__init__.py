"""The twelfth set, filed by subject. The head of each file names its jobs; what the names of their faults mean stands in WORDS of tenth.support, of
eleventh.support and of support."""
from . import generative, graphs, keras_models, pictures, plain, rewards, tables, trees, words

PARTS = (pictures, generative, words, graphs, tables, plain, keras_models, rewards, trees)
