// The section `inhibit_rules`: rules that mute issues while others fire (docs/inhibition.md).
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "core/time.h"

namespace tocsin::routing {

struct InhibitRule {
  std::string name;
  std::vector<std::string> source_matchers;  // as Matchers::parse reads them
  std::vector<std::string> target_matchers;
  std::vector<std::string> equal;   // labels of equal value; an absent one counts as empty
  core::Duration source_min_age{};  // a source counts when it has fired for so long
  core::Duration hold_after{};      // and for so long after its end
};

/// Reads the section `inhibit_rules` of the root map. Every problem is reported at its place.
void read_inhibit_rules(config::Reader& root, std::vector<InhibitRule>& rules);

}  // namespace tocsin::routing
