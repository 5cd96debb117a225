// The issues that the router reports of itself (docs/routing.md).
#pragma once

#include <cstdint>

#include "core/own_issue.h"

namespace tocsin::routing {

enum class RouterIssue : std::uint8_t { job_lost, router_overflow, watchdog, count };

const core::OwnIssue& own_issue(RouterIssue which) noexcept;

}  // namespace tocsin::routing
