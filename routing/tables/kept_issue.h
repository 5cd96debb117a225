// An issue as a router with a million of them keeps it: what routing looks at each time, and the rest
// as bytes that are read when a message is written. A record holds them as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/codes.h"
#include "core/identity.h"
#include "core/issue.h"
#include "core/time.h"
#include "routing/tables/kept_labels.h"

namespace tocsin::routing {

class BytesIn;
class BytesOut;

/// A report of an issue. Members are named as those of core::Issue.
class KeptIssue {
 public:
  KeptIssue() = default;
  explicit KeptIssue(const core::Issue& issue);

  /// All of it.
  [[nodiscard]] core::Issue whole() const;
  /// What changes more than the members here: `edit(core::Issue&)`.
  template <typename Edit>
  void change(Edit&& edit) {
    core::Issue issue = whole();
    edit(issue);
    *this = KeptIssue(issue);
  }
  /// The same run, perhaps another attempt, or told of in other words. One that is said again costs
  /// nothing.
  void follow(const core::RunRef& of);
  /// Borrowed until it changes.
  [[nodiscard]] std::string_view rule() const noexcept;

  void write(BytesOut& io) const;
  /// False: it is not what write() wrote. The rest is read when it is asked for.
  bool read(BytesIn& io);

  struct Run {
    core::RunUid uid;
    std::uint32_t attempt = 1;
  };
  KeptLabels labels;
  std::vector<core::Cause> caused_by;
  core::WallTime starts_at{};
  std::optional<core::WallTime> ends_at;
  Run run;
  core::IssueStatus status = core::IssueStatus::firing;
  core::Resolution resolution = core::Resolution::none;
  core::Severity severity = core::Severity::warning;
  bool shadow = false;
  bool explicit_expiry = true;

 private:
  template <typename IO, typename Issue>
  static void pack_all(IO& io, Issue& issue);

  std::string bytes_;  // the run's words, the rule, the rest; empty: a default issue
};

}  // namespace tocsin::routing
