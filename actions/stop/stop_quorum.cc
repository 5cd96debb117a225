#include "actions/stop/stop_quorum.h"

#include <algorithm>
#include <utility>

namespace tocsin::actions {
namespace {

std::uint64_t number_at(const core::Value& map, std::string_view key, std::uint64_t otherwise) {
  const core::Value* value = core::find(map, key);
  if (value == nullptr) return otherwise;
  const auto* whole = core::as<std::int64_t>(*value);
  return whole == nullptr || *whole < 0 ? otherwise : static_cast<std::uint64_t>(*whole);
}

}  // namespace

std::set<std::string> StopQuorum::of(const std::set<std::string>& firing) const {
  if (rules.empty()) return firing;
  std::set<std::string> out;
  for (const std::string& rule : rules) {
    if (firing.contains(rule)) out.insert(rule);
  }
  return out;
}

bool StopQuorum::met(const std::set<std::string>& firing) const {
  return of(firing).size() >= count;
}

std::string StopQuorum::so_far(const std::set<std::string>& firing) const {
  const auto counted = of(firing);
  std::string names;
  for (const std::string& rule : counted) names += (names.empty() ? "" : ", ") + rule;
  return "quorum: " + std::to_string(counted.size()) + " of " + std::to_string(count) + " rules" +
         (names.empty() ? "" : " (" + names + ")");
}

core::Value quorum_value(const WaitingQuorum& waiting) {
  core::ValueList rules;
  for (const std::string& rule : waiting.quorum.rules) rules.emplace_back(rule);
  return core::ValueMap{{"count", waiting.quorum.count},
                        {"rules", std::move(rules)},
                        {"word", waiting.word},
                        {"max_stops", waiting.limit.count},
                        {"per", core::to_text(waiting.limit.per)}};
}

WaitingQuorum quorum_from(const core::Value& value) {
  WaitingQuorum out;
  out.quorum.count = std::max<std::uint64_t>(1, number_at(value, "count", 1));
  if (const core::Value* rules = core::find(value, "rules")) {
    if (const auto* list = core::as<core::ValueList>(*rules)) {
      for (const core::Value& one : *list) {
        if (const auto* rule = core::as<std::string>(one)) out.quorum.rules.push_back(*rule);
      }
    }
  }
  out.word = core::text_at(value, "word");
  out.limit.count = number_at(value, "max_stops", out.limit.count);
  if (const auto per = core::parse_duration(core::text_at(value, "per"))) out.limit.per = *per;
  return out;
}

}  // namespace tocsin::actions
