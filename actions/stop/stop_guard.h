// Why a run must not be stopped (docs/actions/stop_training.md): pure. Internal to actions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actions/contract/descriptor.h"
#include "actions/stop/stop_failed.h"
#include "core/issue.h"

namespace tocsin::actions {

/// What an issue must meet; texts as label_is.h reads them.
struct StopGuards {
  std::vector<std::string> allow;  // all must hold
  std::vector<std::string> deny;   // none may hold
  std::int64_t min_step = 0;
  std::uint64_t min_consecutive = 1;  // how often the rule must have seen it
};

/// Why a run is not stopped now.
struct Refusal {
  enum class Then {
    told,     // it should have been: people hear of it
    silent,   // there is nothing to stop, or nobody wanted it to have effects
    not_yet,  // what is known is older than the issue: asked again
  };
  Then then = Then::told;
  StopFailure why = StopFailure::refused;
  std::string code = "refused";
  std::string text;
};

/// The guards first, then the fence: is the attempt that the issue names the one that runs now?
/// nullopt: nothing speaks against it.
std::optional<Refusal> refusal(const core::Issue& issue, const StopGuards& guards,
                               const std::optional<core::CurrentRun>& current);
/// The attempt is replaced; `what` goes on after "attempt 3 ".
Refusal stale(std::uint32_t newest, const std::string& what);

}  // namespace tocsin::actions
