// `tocsin replay`: a past span of the configured transport, judged again without any effect.
#pragma once

#include <optional>
#include <string>

#include "app/cli/rule_choice.h"

namespace tocsin::app {

struct ReplayOptions {
  RuleChoice rules;
  std::string out;    // --from: kafka://host:9092 or a directory, before any file
  std::string since;  // see parse_bound()
  std::string until;
  std::string since_word = "--since";  // as the user has spelled it
  std::string until_word = "--until";
  std::string warm_up;  // a duration: read so much before `since`, and show nothing of it
  std::optional<std::int32_t> partition;
  std::string run;
  std::string job;
  std::string sweep;
  bool json = false;
};

/// 0: the same issues as live, or a sweep; 1: they differ; 2: a wrong time, name or value; 3:
/// configuration; 4: broker or journal unreachable, or no telemetry in the span.
int replay_command(const ReplayOptions& options);

}  // namespace tocsin::app
