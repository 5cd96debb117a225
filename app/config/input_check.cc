#include "app/config/input_check.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "app/config/alarm_check.h"

namespace tocsin::app {
namespace {

using rules::RuleSettings;

// tests/tools/test_inputs.py compares this with what rules read and hook and collectors write.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOfOthers{{
    {"operator_latency",
     "Tocsin itself sends no operator calls (tracks op.cpu and op.gpu/<device>): your profiler "
     "does, by hook.span(…, track=\"op.cpu\") or as docs/wire.md says"},
    {"dataloader",
     "Tocsin itself sends no times of loading processes (tracks dataloader/<n>): they do, by "
     "hook.span(…, track=\"dataloader/0\") or as docs/wire.md says"},
}};

// Phases whose spans alone a rule judges.
constexpr std::array<std::pair<std::string_view, std::string_view>, 1> kPhases{
    {{"data_wait", "data_wait"}}};

std::string cannot(const RuleSettings& rule, const std::string& why) {
  return rule.name + " will have nothing to judge: " + why;
}

void check_phases(const config::Reader& root, const AppConfig& config, const RuleSettings& rule,
                  const std::string& path) {
  for (const auto& [type, phase] : kPhases) {
    const auto& timed = config.capture.phases;
    if (rule.type != type || std::find(timed.begin(), timed.end(), phase) != timed.end()) continue;
    root.warning(path, cannot(rule, "capture.phases leaves out " + std::string(phase)));
  }
}

}  // namespace

std::string_view input_of_others(std::string_view rule_type) {
  for (const auto& [type, words] : kOfOthers) {
    if (type == rule_type) return words;
  }
  return {};
}

void check_inputs(const config::Reader& root, const AppConfig& config) {
  for (const RuleSettings& rule : config.rules.rules) {
    const std::string path = path_of_rule(root, rule);
    if (path == "rules") continue;  // of a group: nobody asked for this one
    if (const std::string_view others = input_of_others(rule.type); !others.empty()) {
      root.note(path, rule.name + ": " + std::string(others));
    }
    if (rule.type == "replica_divergence" && config.capture.workers != "all") {
      const bool sure = config.capture.workers == "one";
      const std::string why = "with capture.workers: " + config.capture.workers +
                              ", one rank alone publishes what all hold alike; set it to all";
      sure ? root.warning(path, cannot(rule, why)) : root.note(path, rule.name + ": " + why);
    }
    check_phases(root, config, rule, path);
  }
}

}  // namespace tocsin::app
