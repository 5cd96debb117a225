// Inhibition: while a source fires, its targets are not told (docs/inhibition.md). Sources count
// whatever route they are on, and whether or not they are told themselves.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "routing/suppress/inhibit_rules.h"
#include "routing/suppress/suppressor.h"
#include "routing/tables/firing_index.h"
#include "routing/tree/matcher_index.h"

namespace tocsin::routing {

/// A rule that holds an issue back, and by which other issue.
struct Inhibitor {
  std::string_view reason;  // "inhibition:<name>"
  const IssueState* source = nullptr;
};

/// Keeps no state of its own: who fires stands in the records of the issues, so that a restart and a
/// changed configuration need nothing else.
class Inhibition final : public Suppressor {
 public:
  /// Asks its questions of `firing`, which outlives it. The rules must pass check().
  Inhibition(const std::vector<InhibitRule>& rules, FiringIndex& firing);
  /// invalid_argument: matchers that do not parse.
  static core::Status check(const std::vector<InhibitRule>& rules);

  [[nodiscard]] bool holds_any() const noexcept override { return !rules_.empty(); }
  /// "inhibition:<name>". Stops are not held back unless they ask for it (Integration::respects).
  void reasons(const core::Issue& issue, core::WallTime tick,
               std::vector<Suppression>& out) const override;
  /// The same of labels, with the sources; in the order of the rules. Valid until the rules or the index
  /// change.
  [[nodiscard]] std::vector<Inhibitor> inhibitors(const core::Labels& labels,
                                                  core::WallTime tick) const;
  /// May an issue of these labels hold another one back?
  [[nodiscard]] bool is_source(const core::Labels& labels) const;
  /// Is it the target of some rule, whatever fires?
  [[nodiscard]] bool has_target(const core::Issue& issue) const;
  [[nodiscard]] bool may_differ(const AnyMember& any_member, core::WallTime since,
                                core::WallTime now) const override;

 private:
  struct Rule {
    std::string reason;
    Matchers sources;
    std::size_t question = 0;
  };

  const FiringIndex& firing_;
  std::vector<Rule> rules_;
  MatcherIndex targets_;                       // of the rules
  mutable std::vector<std::size_t> matching_;  // rules that an issue is a target of
};

}  // namespace tocsin::routing
