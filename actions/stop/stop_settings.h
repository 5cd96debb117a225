// The keys of stop_training: when a run is stopped, how, and who has a word in it
// (docs/actions/stop_training.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actions/contract/descriptor.h"
#include "actions/stop/stop_command.h"
#include "actions/stop/stop_guard.h"
#include "actions/stop/stop_ledger.h"
#include "actions/stop/stop_quorum.h"
#include "actions/stop/stop_suspect.h"

namespace tocsin::actions {

struct StopSettings {
  bool armed = false;
  std::vector<std::string> dry_run;  // label=value, or route=<id>: there nothing is sent
  StopTerms terms;
  StopGuards guards;
  StopLimit limit;
  MaxFraction fraction;
  StopQuorum quorum;
  std::string prefix;              // of the jobs that are stopped; empty: the run of the issue
  std::uint64_t max_jobs = 1;      // that the prefix may match
  std::string approval = "never";  // never | always | label=value, …
  core::Duration approval_timeout = std::chrono::minutes(30);
  std::string on_approval_timeout = "cancel";

  /// Why nothing is sent for this issue: "not armed", "dry_run: rule=x"; empty: it is sent.
  [[nodiscard]] std::string held_dry(const core::Issue& issue, const std::string& route_id) const;
  /// Why this issue's stop waits for a person; empty: it does not.
  [[nodiscard]] std::string wants_word(const core::Issue& issue) const;
  /// What it would do, in one line for `tocsin check`.
  [[nodiscard]] std::string intent() const;
};

void read(config::Reader& in, StopSettings& out);

}  // namespace tocsin::actions
