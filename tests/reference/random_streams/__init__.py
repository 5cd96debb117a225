"""Seeded streams: what trainings of many kinds send, drawn at random, with a configuration of one rule each."""
from tests.reference import story
from tests.reference.random_streams import application, ledger, nodes, rows, series, tensors, timing

# name of a family of streams -> (rule, function of random numbers that gives rules and records)
FAMILIES = {
    "all_zero": ("all_zero", rows.all_zero),
    "exploding_tensor": ("exploding_tensor", rows.exploding_tensor),
    "vanishing_gradient": ("vanishing_gradient", rows.vanishing_gradient),
    "weight_update_ratio": ("weight_update_ratio", rows.weight_update_ratio),
    "loss_original": ("loss_not_decreasing", series.loss_original),
    "loss_tocsin": ("loss_not_decreasing", series.loss_tocsin),
    "overfit_modes": ("overfit", series.overfit_modes),
    "overfit_boosting": ("overfit", series.overfit_boosting),
    "stalled_training_rule": ("stalled_training_rule", nodes.stalled_training_rule),
    "cpu_bottleneck": ("cpu_bottleneck", nodes.cpu_bottleneck),
    **{rule: (rule, getattr(nodes, rule))
       for rule in ("io_bottleneck", "low_gpu_utilization", "gpu_memory_increase", "batch_size", "load_balancing",
                    "hardware_utilization", "cpu_utilization", "overall_system_usage", "profiler_report")},
    "overtraining": ("overtraining", series.overtraining),
    "loss_spike": ("loss_spike", series.loss_spike),
    "learning_rate_decay": ("learning_rate_decay", series.learning_rate_decay),
    "budget": ("budget", series.budget),
    "mode_mismatch": ("mode_mismatch", series.mode_mismatch),
    "family_baseline": ("family_baseline", series.family_baseline),
    "adversarial_imbalance": ("adversarial_imbalance", series.adversarial_imbalance),
    **{rule: (rule, getattr(timing, rule))
       for rule in ("step_outlier", "straggler", "data_wait", "operator_latency", "max_initialization_time", "host_memory_growth",
                    "dataloader", "overall_framework_metrics")},
    **{rule: (rule, getattr(tensors, rule))
       for rule in ("tensor_variance", "unchanged_tensor", "weight_saturation", "gradient_clipping", "saturated_activation",
                    "dead_relu", "update_large", "constant_input", "probabilities_into_loss", "input_range", "identical_parameters",
                    "similar_across_runs", "gradient_noise")},
    **{rule: (rule, getattr(application, rule))
       for rule in ("confusion", "class_imbalance", "tree_depth", "feature_importance_overweight", "poor_weight_initialization",
                    "nlp_sequence_ratio", "check_input_images", "replica_divergence", "create_xgboost_report",
                    "chance_level", "tree_without_split", "repeated_batch", "ranks", "precision")},
    "leak": ("leak", ledger.leak),
    "parity": ("parity", ledger.parity),
    "collapse": ("collapse", ledger.collapse),
    "reward": ("reward", ledger.reward),
    "left_out_class": ("left_out_class", ledger.left_out_class),
    "parity of jobs by batches": ("parity", ledger.parity_worlds),
    "movement": ("movement", ledger.movement),
    "course": ("course", series.course),
    "course of boosters": ("course", series.course_boosting),
}


def make(family, seed):
    """(rules, records), the same for the same seed on every machine."""
    return FAMILIES[family][1](story.chance(family, seed))
