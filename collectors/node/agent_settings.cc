#include "collectors/node/agent_settings.h"

#include <algorithm>

#include "collectors/node/descriptors.h"
#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::collectors {
namespace {

constexpr std::size_t kMostOfAWord = 100;

core::Status read_interval(const core::Value& value, AgentSettings& into) {
  const auto* text = core::as<std::string>(value);
  const auto span = text == nullptr ? std::nullopt : core::parse_duration(*text);
  if (span && *span >= kShortestInterval && *span <= kLongestInterval) {
    into.interval = span;
    return core::ok();
  }
  std::string message = "interval: expected a time from " + core::to_text(kShortestInterval) +
                        " to " + core::to_text(kLongestInterval) + ", such as \"500ms\"";
  if (text != nullptr) message += ", not \"" + core::visible(*text, kMostOfAWord) + "\"";
  return core::invalid_argument(message);
}

core::Status read_collectors(const core::Value& value, std::span<const CollectorDescriptor> table,
                             AgentSettings& into) {
  const auto* list = core::as<core::ValueList>(value);
  if (list == nullptr || list->empty())
    return core::invalid_argument("collectors: expected a list of at least one name");
  std::vector<std::string> names;
  for (const core::Value& one : *list) {
    const auto* name = core::as<std::string>(one);
    if (name == nullptr) return core::invalid_argument("collectors: expected names");
    if (find_collector(*name, table) == nullptr)
      return core::invalid_argument("collectors: " +
                                    unknown_collector(core::visible(*name, kMostOfAWord), table));
    if (std::find(names.begin(), names.end(), *name) == names.end()) names.push_back(*name);
  }
  into.collectors = std::move(names);
  return core::ok();
}

}  // namespace

core::Result<AgentSettings> read_agent_settings(const core::Value& args,
                                                std::span<const CollectorDescriptor> table) {
  AgentSettings out;
  if (args.is_null()) return out;
  const auto* members = core::as<core::ValueMap>(args);
  if (members == nullptr) return core::invalid_argument("expected an object");
  for (const auto& [name, value] : *members) {
    core::Status read = core::ok();
    if (name == "interval") {
      if (!value.is_null()) read = read_interval(value, out);
    } else if (name == "collectors") {
      if (!value.is_null()) read = read_collectors(value, table, out);
    } else {
      const std::string near = core::nearest(name, {"interval", "collectors"});
      return core::invalid_argument("unknown field \"" + core::visible(name, kMostOfAWord) + "\"" +
                                    (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }
    if (!read) return read.error();
  }
  return out;
}

core::Value agent_settings_value(const AgentSettings& settings) {
  core::ValueMap out;
  if (settings.interval) out.emplace_back("interval", core::to_text(*settings.interval));
  if (settings.collectors) {
    out.emplace_back("collectors",
                     core::ValueList(settings.collectors->begin(), settings.collectors->end()));
  }
  return out;
}

Config with_settings(const Config& file, const AgentSettings& settings) {
  Config out = file;
  if (settings.interval) out.interval = *settings.interval;
  if (settings.collectors) out.collectors = *settings.collectors;
  return out;
}

std::string sampling_words(const Config& config) {
  std::string out;
  for (std::size_t at = 0; at < config.collectors.size(); ++at) {
    if (at > 0) out += at + 1 == config.collectors.size() ? " and " : ", ";
    out += config.collectors[at];
  }
  return (out.empty() ? "nothing" : out) + " every " + core::to_text(config.interval);
}

}  // namespace tocsin::collectors
