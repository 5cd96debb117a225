// How each rule stands in one run: what it judged, what it lacks, what it has summed up.
#pragma once

#include <map>
#include <string>

#include "core/issue.h"
#include "core/value.h"

namespace tocsin::app {

/// Of the newest attempt that a rule spoke of. A status without a summary takes none back.
class RuleStandings {
 public:
  void saw(const core::RuleStatusEvent& rule);
  /// By the name of the rule.
  [[nodiscard]] core::ValueList rows() const;

 private:
  std::map<std::string, core::RuleStatusEvent> newest_;
};

}  // namespace tocsin::app
