#include "rules/groups.h"

#include <array>

namespace tocsin::rules {
namespace {

/// Quiet on healthy runs of any framework, and worth a person's attention when they speak.
constexpr std::string_view kDefault[] = {"exploding_tensor",
                                         "vanishing_gradient",
                                         "weight_update_ratio",
                                         "loss_not_decreasing",
                                         "overfit",
                                         "stalled_training_rule",
                                         "replica_divergence",
                                         "host_memory_growth",
                                         "identical_parameters",
                                         "constant_input",
                                         "mode_mismatch",
                                         "probabilities_into_loss",
                                         "update_large",
                                         "poor_weight_initialization",
                                         "adversarial_imbalance",
                                         "feature_importance_overweight",
                                         "class_imbalance",
                                         "chance_level",
                                         "tree_without_split"};

/// Rules that refuse to start without a selection (all_zero, tensor_variance, unchanged_tensor,
/// similar_across_runs) are in no group: nobody can choose for the user.
constexpr std::string_view kPyTorch[] = {"exploding_tensor",
                                         "vanishing_gradient",
                                         "weight_update_ratio",
                                         "loss_not_decreasing",
                                         "overfit",
                                         "overtraining",
                                         "stalled_training_rule",
                                         "dead_relu",
                                         "poor_weight_initialization",
                                         "saturated_activation",
                                         "class_imbalance",
                                         "chance_level",
                                         "confusion",
                                         "check_input_images",
                                         "nlp_sequence_ratio",
                                         "gradient_clipping",
                                         "weight_saturation",
                                         "replica_divergence",
                                         "mode_mismatch",
                                         "probabilities_into_loss",
                                         "adversarial_imbalance",
                                         "update_large",
                                         "constant_input",
                                         "input_range",
                                         "identical_parameters",
                                         "loss_spike"};

constexpr std::string_view kXGBoost[] = {
    "exploding_tensor",   "loss_not_decreasing",           "overfit",
    "overtraining",       "stalled_training_rule",         "class_imbalance",
    "confusion",          "feature_importance_overweight", "tree_depth",
    "tree_without_split", "create_xgboost_report"};

constexpr std::string_view kProfiler[] = {"batch_size",
                                          "cpu_bottleneck",
                                          "gpu_memory_increase",
                                          "io_bottleneck",
                                          "load_balancing",
                                          "low_gpu_utilization",
                                          "max_initialization_time",
                                          "step_outlier",
                                          "hardware_utilization",
                                          "cpu_utilization",
                                          "operator_latency",
                                          "straggler",
                                          "host_memory_growth",
                                          "data_wait",
                                          "dataloader",
                                          "overall_system_usage",
                                          "overall_framework_metrics",
                                          "profiler_report"};

constexpr std::array<RuleGroup, 4> kGroups{{
    {"default", "for any training: quiet on healthy runs", kDefault},
    {"all_pytorch", "all rules of tensors and losses for deep learning", kPyTorch},
    {"all_xgboost", "all rules for boosted trees", kXGBoost},
    {"all_profiler", "all rules of system metrics, step times and phases", kProfiler},
}};

}  // namespace

std::span<const RuleGroup> rule_groups() noexcept { return kGroups; }

}  // namespace tocsin::rules
