#include "app/config/fallback_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/text.h"

namespace tocsin::app {
namespace {

using actions::ConfiguredIntegration;

/// Where the integration's key stands: a type may be a map, or a list of maps.
std::string path_of_fallback(const config::Reader& root, const ConfiguredIntegration& one) {
  const std::string receiver = "receivers." + one.receiver;
  const std::string index = "[" + std::to_string(one.index) + "]";
  std::vector<std::string> places{receiver + index + "." + one.type};
  for (std::size_t i = 0; i <= one.index; ++i) {
    places.push_back(receiver + "." + one.type + "[" + std::to_string(i) + "]");
  }
  places.push_back(receiver + "." + one.type);
  for (const std::string& place : places) {
    const auto value = root.value(place + ".fallback");
    const auto* text = value ? core::as<std::string>(*value) : nullptr;
    if (text != nullptr && *text == one.common.fallback) return place + ".fallback";
  }
  return receiver;
}

using Backups = std::map<std::string, std::set<std::string>>;  // receiver → who stands in for it

/// "a → b → a", the way from `from` back to it; empty: there is none.
std::string circle(const Backups& backups, const std::string& from, const std::string& to,
                   std::set<std::string>& seen) {
  if (to == from) return to;
  if (!seen.insert(to).second) return {};
  const auto next = backups.find(to);
  if (next == backups.end()) return {};
  for (const std::string& further : next->second) {
    const std::string way = circle(backups, from, further, seen);
    if (!way.empty()) return to + " → " + way;
  }
  return {};
}

}  // namespace

void check_fallbacks(const config::Reader& root, const AppConfig& config) {
  const auto& names = config.receivers.names;
  Backups backups;
  for (const ConfiguredIntegration& one : config.receivers.integrations) {
    if (!one.common.fallback.empty()) backups[one.receiver].insert(one.common.fallback);
  }
  for (const ConfiguredIntegration& one : config.receivers.integrations) {
    const std::string& fallback = one.common.fallback;
    if (fallback.empty()) continue;
    const std::string place = path_of_fallback(root, one);
    if (std::find(names.begin(), names.end(), fallback) == names.end()) {
      const std::string near = core::nearest(fallback, names);
      root.error(place, "no receiver is called '" + fallback + "'" +
                            (near.empty() ? "" : "; did you mean '" + near + "'?"));
      continue;
    }
    std::set<std::string> seen;
    const std::string way = circle(backups, one.receiver, fallback, seen);
    if (!way.empty()) {
      root.error(place, "receivers stand in for each other in a circle: " + one.receiver + " → " +
                            way + "; one of them must have no fallback");
    }
  }
}

}  // namespace tocsin::app
