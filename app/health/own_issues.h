// What a process tells of itself: it stands still, its configuration was refused, a topic it needs is
// not there or not safe (docs/rules/README.md, "Always on").
#pragma once

#include <cstdint>
#include <span>

#include "core/own_issue.h"

namespace tocsin::app {

std::span<const core::OwnIssue> own_issues() noexcept;

enum class ProcessIssue : std::uint8_t {
  stage_stands_still,
  configuration_refused,
  topic_missing,
  topic_unsafe,
  descriptors_exhausted,
  count,
};

const core::OwnIssue& own_issue(ProcessIssue which) noexcept;

}  // namespace tocsin::app
