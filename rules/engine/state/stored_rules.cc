#include "rules/engine/state/stored_rules.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "rules/declared/read.h"

namespace tocsin::rules {
namespace {

constexpr char kBetween = '\x1f';
constexpr int kFields = 4;  // name, type, parameters' hash, shape

struct Stored {
  std::string line;  // as RuleTable::line()
  std::string definition;
};

Stored parse_line(std::string_view text) {
  std::size_t end = 0;
  for (int field = 0; field < kFields && end != std::string_view::npos; ++field) {
    end = text.find(kBetween, field == 0 ? 0 : end + 1);
  }
  Stored out{std::string(text.substr(0, end)) + '\n', {}};
  if (end != std::string_view::npos) out.definition = text.substr(end + 1);
  return out;
}

std::vector<Stored> parse(std::string_view stored) {
  std::vector<Stored> out;
  while (!stored.empty()) {
    const std::size_t end = std::min(stored.find('\n'), stored.size());
    out.push_back(parse_line(stored.substr(0, end)));
    stored.remove_prefix(std::min(end + 1, stored.size()));
  }
  return out;
}

std::optional<RuleSettings> settings_of(const Stored& rule, const RuleTable& configured) {
  if (!rule.definition.empty()) {
    auto made = read_definition(rule.definition);
    // Another version of the program may make another rule of it.
    if (made && RuleTable({*made}).line(0) == rule.line) return made;
  }
  for (std::uint32_t i = 0; i < configured.first_own; ++i) {
    if (configured.line(i) == rule.line) return configured.all[i];
  }
  return std::nullopt;
}

}  // namespace

std::string definition_of(const RuleSettings& rule) {
  const bool builtin = find_rule(rule.type) != nullptr && !rule.hosted;
  if (!builtin && rule.type != declared::kType) return {};
  core::ValueMap out{{"name", rule.name}};
  if (rule.severity_set) {
    out.emplace_back("severity", std::string(core::to_string(rule.severity)));
  }
  if (rule.shadow) out.emplace_back("shadow", true);
  if (!rule.runbook_url.empty()) out.emplace_back("runbook_url", rule.runbook_url);
  core::ValueMap given;
  for (const core::Parameter& one : rule.parameters) {
    if (one.origin == "user") given.emplace_back(one.name, one.value);
  }
  if (builtin) {
    out.emplace_back("use", rule.type);
    if (rule.preset == Preset::original) out.emplace_back("preset", "original");
    if (!given.empty()) out.emplace_back("with", std::move(given));
  } else {
    out.emplace_back("cooldown", core::to_text(rule.program->common.cooldown));
    out.insert(out.end(), given.begin(), given.end());
  }
  return core::to_json(out);
}

std::optional<RuleSettings> read_definition(const std::string& definition) {
  std::string text = "rules: [";
  for (std::size_t i = 0; i < definition.size(); ++i) {
    if (definition.compare(i, 2, "${") == 0)
      text += '$';  // variables were replaced when it was read
    text += definition[i];
  }
  text += "]";
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  config::Diagnostics problems;  // that rules it follows are not there, for instance
  RulesConfig out;
  if (const auto document = config::Document::parse(text, "rules-state", nothing, problems)) {
    document->read(problems, [&](config::Reader& root) { read_rules(root, out); });
  }
  if (out.rules.empty()) return std::nullopt;
  return std::move(out.rules.front());  // behind it may stand those that it brings along
}

std::string stored_text(const RuleTable& rules) {
  std::string text;
  for (std::uint32_t i = 0; i < rules.all.size(); ++i) {
    text += rules.line(i);
    const std::string definition = definition_of(rules.all[i]);
    if (definition.empty()) continue;
    text.back() = kBetween;
    text += definition + '\n';
  }
  return text;
}

std::string layout_of(std::string_view stored) {
  std::string out;
  for (const Stored& rule : parse(stored)) out += rule.line;
  return out;
}

// Also `shadow`, which no line says: an issue that a reload ended because of it is over.
std::shared_ptr<const RuleTable> stored_table(const std::string& stored,
                                              const std::shared_ptr<const RuleTable>& configured) {
  auto some = std::make_shared<const RuleTable>(make_stored(stored, *configured));
  return stored_text(*some) == stored_text(*configured) ? configured : some;
}

RuleTable make_stored(std::string_view stored, const RuleTable& configured) {
  std::vector<RuleSettings> rules;
  for (const Stored& rule : parse(stored)) {
    auto settings = settings_of(rule, configured);
    if (settings) rules.push_back(std::move(*settings));
  }
  return RuleTable(std::move(rules));
}

}  // namespace tocsin::rules
