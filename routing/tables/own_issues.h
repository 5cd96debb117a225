// The issues that the router reports of itself (docs/routing.md).
#pragma once

#include <cstdint>

#include "core/issue.h"
#include "core/own_issue.h"

namespace tocsin::routing {

enum class RouterIssue : std::uint8_t {
  job_lost,
  router_overflow,
  watchdog,
  silence_notice,
  count
};

const core::OwnIssue& own_issue(RouterIssue which) noexcept;
/// It tells of a silence, so that none holds it back.
bool is_silence_notice(std::string_view rule) noexcept;

}  // namespace tocsin::routing
