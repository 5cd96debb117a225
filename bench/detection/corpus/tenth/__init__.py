"""The tenth set, filed by subject."""
from . import boosting, frameworks, generative, keras_models, language, reinforcement, tables, vision

PARTS = (vision, language, tables, generative, reinforcement, frameworks, keras_models, boosting)
