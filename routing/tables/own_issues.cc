#include "routing/tables/own_issues.h"

#include <array>

#include "routing/routing.h"

namespace tocsin::routing {
namespace {

constexpr std::array<std::string_view, 2> kOfARun{"job", "run_uid"};
constexpr std::array<std::string_view, 1> kOfARoute{"route"};
constexpr std::array<std::string_view, 1> kOfASilence{"silence"};

constexpr std::array<core::OwnIssue, static_cast<std::size_t>(RouterIssue::count)> kOwnIssues{{
    {"job_lost", kOfARun},
    {"router_overflow", kOfARoute},
    {"watchdog", {}},
    {"silence_notice", kOfASilence},
}};
static_assert(!kOwnIssues.back().name.empty(), "an issue without a row");

}  // namespace

std::span<const core::OwnIssue> own_issues() noexcept { return kOwnIssues; }

const core::OwnIssue& own_issue(RouterIssue which) noexcept {
  return kOwnIssues[static_cast<std::size_t>(which)];
}

bool is_silence_notice(std::string_view rule) noexcept {
  return rule == own_issue(RouterIssue::silence_notice).name;
}

}  // namespace tocsin::routing
