#include "app/replay/rule_items.h"

#include <array>
#include <optional>
#include <utility>

#include "config/config.h"
#include "core/json.h"

namespace tocsin::app {
namespace {

std::string escaped(std::string json) {
  for (std::size_t at = json.find("${"); at != std::string::npos; at = json.find("${", at + 3)) {
    json.insert(at, "$");  // a text of the user's, and no variable
  }
  return json;
}

}  // namespace

core::Result<rules::RuleSettings> first_rule(core::ValueList items, const std::string& place) {
  config::Diagnostics diagnostics;
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  const std::string text = escaped(core::to_json(core::ValueMap{{"rules", std::move(items)}}));
  const auto document = config::Document::parse(text, place, nothing, diagnostics);
  rules::RulesConfig made;
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) { rules::read_rules(root, made); });
  }
  for (const auto& problem : diagnostics.items()) {
    if (problem.grade == config::Grade::error) return core::invalid_argument(problem.message);
  }
  if (made.rules.empty()) return core::invalid_argument("no rule");
  return std::move(made.rules.front());
}

namespace {

core::Error not_ours(const core::Issue& issue, const std::string& why) {
  return core::Error{core::Code::failed_precondition, issue.rule + ": " + why};
}

// A rule of one's own has its text among its parameters, and no type to be named by.
core::ValueMap item_of(const core::Issue& issue, const char* preset) {
  const bool own = rules::find_rule(issue.rule_type) == nullptr;
  core::ValueMap item{{"name", issue.rule}};
  core::ValueMap with;
  for (const core::Parameter& one : issue.evidence.parameters) {
    if (one.origin != "user" || one.value.is_null()) continue;
    (own ? item : with).emplace_back(one.name, one.value);
  }
  if (own) return item;
  item.emplace_back("use", issue.rule_type);
  item.emplace_back("preset", preset);
  item.emplace_back("with", std::move(with));
  return item;
}

}  // namespace

core::Result<rules::RuleSettings> rule_of(const core::Issue& issue) {
  std::optional<core::Error> last;
  for (const char* preset : {"tocsin", "original"}) {
    auto rule = first_rule(core::ValueList{item_of(issue, preset)}, "issue");
    if (!rule) {
      last = not_ours(issue, "it cannot be made from what the issue says: " + rule.error().message);
    } else if (rule->version != issue.rule_version) {
      return not_ours(issue, "this program has version " + rule->version + " of " +
                                 issue.rule_type + ", the issue is of version " +
                                 issue.rule_version);
    } else if (rule->params_hash == issue.params_hash) {
      return rule;
    } else {
      last = not_ours(issue, "its parameters hash to " + rule->params_hash +
                                 ", those of the issue to " + issue.params_hash);
    }
  }
  return *last;
}

}  // namespace tocsin::app
