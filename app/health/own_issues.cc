#include "app/health/own_issues.h"

#include <array>
#include <string_view>

namespace tocsin::app {
namespace {

constexpr std::array<std::string_view, 3> kOfAStage{"node", "role", "stage"};
constexpr std::array<std::string_view, 2> kOfAProcess{"node", "role"};
constexpr std::array<std::string_view, 1> kOfATopic{"topic"};

constexpr std::array<core::OwnIssue, static_cast<std::size_t>(ProcessIssue::count)> kOwnIssues{{
    {"stage_stands_still", kOfAStage},
    {"configuration_refused", kOfAProcess},
    {"topic_missing", kOfATopic},
    {"topic_unsafe", kOfATopic},
    {"descriptors_exhausted", kOfAProcess},
}};
static_assert(!kOwnIssues.back().name.empty(), "an issue without a row");

}  // namespace

std::span<const core::OwnIssue> own_issues() noexcept { return kOwnIssues; }

const core::OwnIssue& own_issue(ProcessIssue which) noexcept {
  return kOwnIssues[static_cast<std::size_t>(which)];
}

}  // namespace tocsin::app
