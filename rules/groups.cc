#include "rules/groups.h"

#include <array>

namespace tocsin::rules {
namespace {

constexpr std::array<RuleGroup, 4> kGroups{{
    {"default", "for any training: quiet on healthy runs", group::kDefault},
    {"all_pytorch", "all rules of tensors and losses for deep learning", group::kPyTorch},
    {"all_xgboost", "all rules for boosted trees", group::kXGBoost},
    {"all_profiler", "all rules of system metrics, step times and phases", group::kProfiler},
}};

}  // namespace

std::span<const RuleGroup> rule_groups() noexcept { return kGroups; }

}  // namespace tocsin::rules
