"""Which file belongs to which set, and what is known of each set. The key is the name that the dated reports in docs/reports use."""
import dataclasses
import importlib


@dataclasses.dataclass(frozen=True)
class Set:
    """What was written at one time, by somebody who had seen no verdict of it."""
    about: str
    written: str  # in November 2026
    recipes: tuple = ()  # files whose jobs and faults enter themselves into the tables of recipes/
    scripts: tuple = ()  # files that train by themselves: TUNING, FAULTS, fault_names, run

    def parts(self):
        """The modules of its scripts."""
        return tuple(_module(name) for name in self.scripts)


def _module(name):
    return importlib.import_module(f"bench.detection.corpus.{name}")


SETS = {
    "early": Set("small common trainings", "22–23", ("mixed.modern", "mixed.waves_and_mixers", "mixed.triplets_and_actors"),
                 ("generative.adversarial", "frameworks.scikit_batches", "boosting.warm_start")),
    "fourth": Set("kinds that were not there before", "23", ("mixed.patches_and_towers",)),
    "fifth": Set("optimizers, networks and tasks that were not there before", "23", ("mixed.flows_and_arms",), ("frameworks.trainers",)),
    "sixth": Set("losses and ways of training that were not there before", "23", ("mixed.new_losses", "mixed.ways_of_training"),
                 ("boosting.objectives", "reinforcement.poles_and_critics", "frameworks.keras_and_jax")),
    "seventh": Set("kinds that were not there before", "24",
                   ("vision.representations", "language.labels_and_translation", "tabular.graphs_and_physics"),
                   ("frameworks.ppo_and_trainers", "boosting.constraints")),
    "eighth": Set("kinds that were not there before", "24",
                  ("vision.signals_and_spaces", "language.adapted_models", "tabular.lists_and_sets", "mixed.unusual_ways"),
                  ("generative.tiles_and_worlds", "frameworks.two_optimizers", "boosting.wrappers")),
    "ninth": Set("common trainings by common recipes", "24", ("vision.common", "language.common", "tabular.common"),
                 ("generative.dcgan_and_dqn", "frameworks.common", "boosting.tutorials")),
    "long": Set("ten thousand steps, healthy only", "23", ("mixed.ten_thousand_steps",)),
    "tenth": Set("mixed", "26", (), ("vision.classifiers", "language.transformers", "tabular.embeddings", "generative.diffusion_and_pixels",
                                     "reinforcement.grid_and_reach", "frameworks.lightning_and_jax", "frameworks.keras_tutorials",
                                     "boosting.defaults_and_counts")),
    "eleventh": Set("mixed", "26", (), ("vision.mixup_and_distillation", "language.topics", "sequences.speech_and_series", "graphs.nodes_and_pairs",
                                        "tabular.spreads", "reinforcement.pole_room_and_stock", "frameworks.lightning_jax_keras",
                                        "boosting.loads_and_rankings")),
    "planted": Set("kinds of faults of a published benchmark, in three programs of our own", "26", (), ("planted.programs",)),
    "twelfth": Set("mixed", "26", (), ("vision.masks", "generative.latents", "language.retrieval_and_preferences", "graphs.links_and_baskets",
                                       "tabular.grades_and_survival", "frameworks.no_network_library", "frameworks.keras_functional",
                                       "reinforcement.hover_and_catch", "boosting.frauds_and_delays")),
}

# Which faults a job of a set gets, where they are drawn from those that fit it. The newest set of a job's traits counts.
DRAWN = (("ninth", "recipes.faults_of_forums"), ("eighth", "recipes.faults_of_evaluations"), ("seventh", "recipes.faults_of_noise"),
         ("sixth", "recipes.faults_of_precision"))
# Files of faults in the order of their table: a draw depends on it.
FAULTS = ("recipes.faults", "recipes.faults_of_evaluations", "recipes.faults_of_noise", "recipes.faults_of_forums", "recipes.faults_of_precision",
          "recipes.faults_of_practice", "recipes.faults_of_parts")
# Few points each, one per round: runs are saved at every one.
ROUNDS = ("boosting.few_rounds", "boosting.warm_start", "boosting.objectives", "boosting.constraints", "boosting.wrappers",
          "boosting.defaults_and_counts", "boosting.loads_and_rankings", "boosting.frauds_and_delays")


def load():
    """(modules of scripts, [(set, its draw of faults)], modules of ROUNDS): fills the tables of jobs and faults."""
    for name in FAULTS:
        _module(name)
    for one in SETS.values():
        for name in one.recipes:
            _module(name)
    return (tuple(part for one in SETS.values() for part in one.parts()), [(name, _module(file).drawn) for name, file in DRAWN],
            tuple(_module(name) for name in ROUNDS))


def job_names(name, jobs, few_rounds):
    """The jobs of one set, of the table `jobs` and of its scripts. KeyError: there is no such set."""
    files = [f"bench.detection.corpus.{file}" for file in SETS[name].recipes]
    if name == "early":
        files.append("bench.detection.corpus.recipes.jobs")
    own = [job for job, made in jobs.items() if made.make.__module__ in files] + [job for part in SETS[name].parts() for job in part.TUNING]
    return own + (few_rounds.job_names() if name == "early" else [])
