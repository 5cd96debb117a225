// How long the windows of rules last that count samples of a node.
#include <algorithm>
#include <map>

#include "app/config/alarm_check.h"

namespace tocsin::app {
namespace {

const core::Value* parameter(const rules::RuleSettings& rule, std::string_view name) {
  for (const core::Parameter& one : rule.parameters) {
    if (one.name == name) return one.value.is_null() ? nullptr : &one.value;
  }
  return nullptr;
}

std::string lasts(std::int64_t samples, const AppConfig& config) {
  return core::to_text(samples * config.collect.interval);
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

void check_sample_windows(const config::Reader& root, const AppConfig& config) {
  std::map<std::int64_t, std::vector<std::string>> patient;  // by samples
  const std::string pace = " at collect.interval " + core::to_text(config.collect.interval);
  for (const rules::RuleSettings& rule : config.rules.rules) {
    const auto* descriptor = rules::find_rule(rule.type);
    if (descriptor == nullptr || descriptor->metrics.empty()) continue;
    for (const char* name : {"patience", "window"}) {
      const auto* samples = core::as<std::int64_t>(parameter(rule, name));
      const bool counts = samples != nullptr && *samples > 0 && *samples <= 1'000'000;
      const auto* seconds = parameter(rule, std::string(name) + "_seconds");
      if (seconds != nullptr && config.collect.interval != std::chrono::milliseconds(500)) {
        root.warning("rules", rule.name + ": " + name +
                                  "_seconds counts two samples a second, and " +
                                  "there is one in " + core::to_text(config.collect.interval) +
                                  ": give " + name + " in samples");
      } else if (seconds == nullptr && counts && std::string_view(name) == "patience") {
        patient[*samples].push_back(rule.name);
      }
    }
  }
  for (const auto& [samples, names] : patient) {
    root.note("rules", joined_names(names) + (names.size() > 1 ? " judge" : " judges") + " after " +
                           std::to_string(samples) + " samples: " + lasts(samples, config) + pace);
  }
}

}  // namespace tocsin::app
