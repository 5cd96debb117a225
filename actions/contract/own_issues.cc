#include "actions/contract/own_issues.h"

#include <algorithm>
#include <array>

namespace tocsin::actions {
namespace {

constexpr std::array<std::string_view, 3> kOfADelivery{"integration", "receiver", "type"};
constexpr std::array<std::string_view, 4> kOfARecipient{"integration", "receiver", "recipient",
                                                        "type"};
constexpr std::array<std::string_view, 3> kOfAStop{"job", "reason", "run_uid"};
constexpr std::array<std::string_view, 2> kOfARun{"job", "run_uid"};

constexpr std::array<std::string_view, 3> kOfAnAdjustment{"adjustment", "job", "run_uid"};
constexpr std::array<std::string_view, 1> kOfARule{"suspect"};

constexpr std::array<core::OwnIssue, static_cast<std::size_t>(ActionIssue::count)> kOwnIssues{{
    {"delivery_dead", kOfADelivery},
    {"delivery_config", kOfADelivery},
    {"delivery_parked", kOfADelivery},
    {"delivery_standing", kOfADelivery},
    {"delivery_recipient", kOfARecipient},
    {"stop_failed", kOfAStop},
    {"stopped_by_hand", kOfARun},
    {"stop_waits", kOfARun},
    {"stop_suspect", kOfARule},
    {"adjusted", kOfAnAdjustment},
    {"adjust_failed", kOfAnAdjustment},
}};
static_assert(!kOwnIssues.back().name.empty(), "an issue without a row");

}  // namespace

std::span<const core::OwnIssue> own_issues() noexcept { return kOwnIssues; }

const core::OwnIssue& own_issue(ActionIssue which) noexcept {
  return kOwnIssues[static_cast<std::size_t>(which)];
}

bool is_own_issue(std::string_view rule) noexcept {
  return std::any_of(kOwnIssues.begin(), kOwnIssues.end(),
                     [&](const auto& one) { return one.name == rule; });
}

}  // namespace tocsin::actions
