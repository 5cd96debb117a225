// A stop that is not asked of the run yet: its request is what a person, or other rules, answer
// (docs/approvals.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actions/integration/command_frame.h"
#include "actions/stop/stop_approvals.h"
#include "actions/stop/stop_settings.h"
#include "core/action.h"
#include "core/stop_request.h"

namespace tocsin::actions {

/// "digits, run 4e30… attempt 1".
std::string name_of(const core::RunRef& run);

/// Writes the requests of one integration. Used from many threads.
class StopWaits {
 public:
  struct Why {
    std::string word;    // a person has to say a word: "approval: always"
    std::string quorum;  // other rules have to fire first: "quorum: 1 of 2 rules"
    [[nodiscard]] bool waits() const { return !word.empty() || !quorum.empty(); }
  };
  /// What is referred to outlives it.
  StopWaits(const Environment& environment, std::string integration, StopApprovals& approvals,
            const StopSettings& settings);

  /// Nothing is asked of the run. The record of the request is durable when this returns `delivered`.
  [[nodiscard]] core::AttemptOutcome wait(const core::Command& command, const core::Issue& issue,
                                          const Why& why) const;

 private:
  [[nodiscard]] core::StopRequest request_for(const core::Command& command,
                                              const core::Issue& issue, const Why& why) const;
  core::Status keep(const core::StopRequest& request) const;
  [[nodiscard]] core::AttemptOutcome told(core::AttemptOutcome out,
                                          const core::StopRequest& request) const;

  CommandFrame frame_;
  std::string integration_;
  std::string cluster_;
  std::vector<std::string> place_;
  std::function<core::Status(const core::OutRecord&)> publish_;
  StopApprovals& approvals_;
  const StopSettings& settings_;
};

}  // namespace tocsin::actions
