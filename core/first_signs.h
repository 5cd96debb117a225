// Which issues of a run were first signs. The engine names causes when it reports an issue; a rule that waits for a
// completed step may report an earlier step a moment later. Whoever knows all issues of a run looks again here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tocsin::core {

/// When an episode of an issue began and ended. What is borrowed outlives it.
struct IssueSpan {
  std::string_view key, mode;  // mode: as it is written; empty: it has none
  std::int64_t attempt = 0;
  std::optional<std::int64_t> step;
  std::int64_t opened = 0;             // microseconds, UTC
  std::optional<std::int64_t> closed;  // nullopt: it is not over
};

/// Whether `other` began at an earlier step of the same attempt and mode, and was not over when `one` began. An issue is
/// not before itself, whatever its episodes.
bool began_before(const IssueSpan& other, const IssueSpan& one);

/// For each issue of one run, in their order, whether any other began before it. O(n log n).
std::vector<bool> preceded(const std::vector<IssueSpan>& issues);

}  // namespace tocsin::core
