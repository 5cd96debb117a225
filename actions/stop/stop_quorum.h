// A stop that wants more than one rule to fire for its run (docs/approvals.md): pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "actions/stop/stop_ledger.h"
#include "core/value.h"

namespace tocsin::actions {

/// `count` distinct rules must fire for the run; of `rules`, where that is not empty.
struct StopQuorum {
  std::uint64_t count = 1;
  std::vector<std::string> rules;

  [[nodiscard]] bool wanted() const { return count > 1 || !rules.empty(); }
  /// Those that count, of the rules that fire.
  [[nodiscard]] std::set<std::string> of(const std::set<std::string>& firing) const;
  [[nodiscard]] bool met(const std::set<std::string>& firing) const;
  /// "quorum: 1 of 2 rules (loss_nan)".
  [[nodiscard]] std::string so_far(const std::set<std::string>& firing) const;
};

/// What a request for a stop keeps of it: enough to carry the stop out once the quorum is there.
struct WaitingQuorum {
  StopQuorum quorum;
  StopLimit limit;
  std::string word;  // why it waits for a person then; empty: it does not
};
core::Value quorum_value(const WaitingQuorum& waiting);
WaitingQuorum quorum_from(const core::Value& value);

}  // namespace tocsin::actions
