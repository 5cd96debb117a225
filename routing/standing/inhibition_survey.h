// Who inhibits whom among issues that somebody else knows: for lists and previews.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/issue.h"
#include "core/labels.h"
#include "core/time.h"
#include "routing/suppress/inhibit_rules.h"

namespace tocsin::routing {

/// A source that fires, or has just ended and still counts.
struct InhibitedBy {
  std::string rule;    // name of the inhibit rule
  std::string source;  // issue key; of several the one that counts longest
  friend bool operator==(const InhibitedBy&, const InhibitedBy&) = default;
};

/// Answers as the router does at a flush, of the issues that it was given. Not thread-safe.
class InhibitionSurvey {
 public:
  /// The rules must be those of a router that could be made. Without rules nothing costs anything.
  explicit InhibitionSurvey(const std::vector<InhibitRule>& rules);
  ~InhibitionSurvey();
  InhibitionSurvey(InhibitionSurvey&&) noexcept;
  InhibitionSurvey& operator=(InhibitionSurvey&&) noexcept;

  /// An issue that began at `since`, and fires or has ended (`issue.ends_at`). Each key once. Keeps
  /// what it needs, and only of sources.
  void add(const std::string& key, const core::Issue& issue, bool firing, core::WallTime since);
  /// Each rule that holds an issue of these labels back at `at`, in the order of the rules.
  [[nodiscard]] std::vector<InhibitedBy> of(const core::Labels& labels, core::WallTime at) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;  // null: no rules
};

}  // namespace tocsin::routing
