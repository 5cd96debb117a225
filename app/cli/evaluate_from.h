// `tocsin evaluate --from DIR`: a recorded journal judged once, and left as it is.
#pragma once

#include <string>

#include "app/cli/rule_choice.h"

namespace tocsin::app {

struct RecordedOptions {
  std::string directory;
  RuleChoice rules;
  std::string run;    // only this one: a uid or its beginning, or with `job` its name
  std::string job;    // of `run`
  std::string sweep;  // instead of a judgement: when each value of a parameter would have fired
  bool json = false;
};

/// 0: no issue, or a sweep; 1: issues were found; 2: a name that does not exist; 3: configuration; 4: the
/// journal cannot be read, or holds no telemetry.
int evaluate_recorded(const RecordedOptions& options);

}  // namespace tocsin::app
