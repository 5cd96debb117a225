#include "app/cli/rule_commands.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/config/input_check.h"
#include "app/process/exit_code.h"
#include "app/view/run_questions.h"
#include "core/json.h"
#include "core/text.h"
#include "core/text_table.h"
#include "rules/rules.h"

namespace tocsin::app {
namespace {
constexpr const char* kDeclared = "declared";  // the type of rules without `use`
constexpr std::size_t kListColumns = 100;
}  // namespace

int rules_list(const RulesListOptions& options) {
  if (options.json) {
    core::ValueList list;
    for (const auto& rule : rules::builtin_rules()) {
      list.push_back(core::ValueMap{{"name", std::string(rule.name)},
                                    {"severity", std::string(core::to_string(rule.severity))},
                                    {"title", std::string(rule.title)},
                                    {"input", std::string(input_of_others(rule.name))}});
    }
    std::cout << core::to_json(core::Value(std::move(list))) << "\n";
    return kOk;
  }
  for (const auto& rule : rules::builtin_rules()) {
    std::printf("%-26s %-8s %s\n", std::string(rule.name).c_str(),
                std::string(core::to_string(rule.severity)).c_str(),
                (std::string(rule.title) +
                 (input_of_others(rule.name).empty() ? "" : " [its input comes from elsewhere]"))
                    .c_str());
  }
  std::printf("%-26s %-8s %s\n", kDeclared, "warning",
              "Yours: a condition in the configuration (tocsin rules describe declared).");
  return kOk;
}

namespace {

// "integer >= 1: hits in a row before an issue is raised"
std::string meaning(const config::KeyDoc& key) {
  return key.type + (key.range.empty() ? "" : ", " + key.range) + ": " + key.help;
}

/// The defaults of a rule's parameters, as `with:` would spell them in JSON.
class Defaults {
 public:
  Defaults(const rules::RuleDescriptor& rule, rules::Preset preset)
      : keys_(config::describe([&](config::Reader& in) { (void)rule.read(in, preset); })),
        made_(rules::make_rule(rule.name, preset)) {}

  [[nodiscard]] const std::vector<config::KeyDoc>& keys() const { return keys_; }
  [[nodiscard]] std::string of(const std::string& parameter) const {
    if (made_) {
      for (const auto& other : made_->parameters) {
        if (other.name == parameter) return core::to_json(other.value);
      }
    }
    // A rule that cannot do without a selector is none without it, but its parameters are known; and
    // some stand for many (profiler_report).
    for (const config::KeyDoc& key : keys_) {
      if (key.path == parameter) return as_json(key);
    }
    return "–";
  }

 private:
  static std::string as_json(const config::KeyDoc& key) {
    if (key.fallback.empty()) return "null";
    const bool bare = key.type == "integer" || key.type == "number" || key.type == "boolean" ||
                      key.fallback.starts_with('[');
    return bare ? key.fallback : core::to_json(core::Value(key.fallback));
  }

  std::vector<config::KeyDoc> keys_;
  core::Result<rules::RuleSettings> made_;
};

// The keys of an item of `rules:` that has a condition of its own.
std::vector<config::KeyDoc> declared_keys() {
  std::vector<config::KeyDoc> out;
  for (config::KeyDoc& key : config::describe([](config::Reader& root) {
         rules::RulesConfig ignored;
         rules::read_rules(root, ignored);
       })) {
    constexpr std::string_view kItem = "rules[].";
    if (!key.path.starts_with(kItem)) continue;
    key.path.erase(0, kItem.size());
    if (key.path == "use" || key.path == "preset" || key.path.starts_with("with")) continue;
    out.push_back(std::move(key));
  }
  return out;
}

int describe_declared(bool json) {
  core::ValueList list;
  if (!json) {
    std::cout << "declared: a rule of your own, a condition over what it selects "
                 "(docs/custom-rules.md)\n\n";
  }
  for (const config::KeyDoc& key : declared_keys()) {
    if (json) {
      list.push_back(core::ValueMap{{"name", key.path},
                                    {"type", key.type},
                                    {"range", key.range},
                                    {"help", key.help},
                                    {"default", key.fallback}});
    } else {
      std::printf("%-28s %s\n    %s\n", key.path.c_str(), key.fallback.c_str(),
                  meaning(key).c_str());
    }
  }
  std::fflush(stdout);
  if (json) {
    std::cout << core::to_json(core::ValueMap{{"name", kDeclared}, {"parameters", std::move(list)}})
              << "\n";
  }
  return kOk;
}

int describe_as_json(const rules::RuleDescriptor& rule) {
  const Defaults ours(rule, rules::Preset::tocsin);
  const Defaults theirs(rule, rules::Preset::original);
  const auto parsed = [](const std::string& json) {
    const auto value = core::parse_json(json, 1U << 16);
    return value ? *value : core::Value();
  };
  core::ValueList parameters;
  for (const auto& key : ours.keys()) {
    parameters.push_back(core::ValueMap{{"name", key.path},
                                        {"type", key.type},
                                        {"range", key.range},
                                        {"help", key.help},
                                        {"tocsin", parsed(ours.of(key.path))},
                                        {"original", parsed(theirs.of(key.path))}});
  }
  std::cout << core::to_json(
                   core::ValueMap{{"name", std::string(rule.name)},
                                  {"original_name", std::string(rule.original_name)},
                                  {"title", std::string(rule.title)},
                                  {"needs", std::string(rule.needs)},
                                  {"unit", std::string(rule.unit)},
                                  {"severity", std::string(core::to_string(rule.severity))},
                                  {"parameters", std::move(parameters)}})
            << "\n";
  return kOk;
}

// Parameters that most rules have with the same meaning.
std::set<std::string> shared_parameters() {
  std::map<std::pair<std::string, std::string>, std::size_t> rules_with;
  const auto all = rules::builtin_rules();
  for (const auto& rule : all) {
    for (const auto& key : config::describe(
             [&](config::Reader& in) { (void)rule.read(in, rules::Preset::tocsin); })) {
      ++rules_with[{key.path, key.help}];
    }
  }
  std::set<std::string> out;
  for (const auto& [key, count] : rules_with) {
    if (2 * count > all.size()) out.insert(key.first);
  }
  return out;
}

// What a shared parameter is where the rule has no default of its own.
std::string common_default(const config::KeyDoc& key) {
  static const Defaults kOfOne(*rules::find_rule("chance_level"), rules::Preset::tocsin);
  return kOfOne.of(key.path);
}

// The question of the run card that the rule answers; null: it is none of them.
const RunQuestion* question_of(std::string_view rule) {
  for (const RunQuestion& question : run_questions()) {
    if (question.rules[0] == rule) return &question;
  }
  return nullptr;
}

int no_such_rule(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& rule : rules::builtin_rules()) names.emplace_back(rule.name);
  const std::string near = core::nearest(name, names);
  std::cerr << "tocsin: no rule \"" << name << "\""
            << (near.empty() ? "" : "; did you mean \"" + near + "\"?")
            << " (see tocsin rules list)\n";
  return kFailed;
}

}  // namespace

int rules_describe(const RulesDescribeOptions& options) {
  if (options.rule == kDeclared) return describe_declared(options.json);
  const auto* rule = rules::find_rule(options.rule);
  if (rule == nullptr) return no_such_rule(options.rule);
  if (options.json) return describe_as_json(*rule);
  const std::string original(rule->original_name);
  std::cout << core::wrapped(
      std::string(rule->name) + (original.empty() ? "" : " (" + original + ")") + ": ",
      std::string(rule->title), kListColumns, 2);
  if (const RunQuestion* question = question_of(rule->name)) {
    std::cout << "asks: " << question->asks << " (question " << question->number
              << " of the run card, " << question->name << ")\n";
  }
  std::string needs(rule->needs);
  if (const std::string_view others = input_of_others(rule->name); !others.empty()) {
    needs += "; " + std::string(others);
  }
  std::cout << core::wrapped("needs: ", needs, kListColumns, 2) << "unit: " << rule->unit
            << ", severity: " << core::to_string(rule->severity) << "\n\n";
  const Defaults ours(*rule, rules::Preset::tocsin);
  const Defaults theirs(*rule, rules::Preset::original);
  const std::set<std::string> shared = shared_parameters();
  std::string of_all;
  for (const auto& key : ours.keys()) {
    const std::string mine = ours.of(key.path);
    const std::string other = theirs.of(key.path);
    if (shared.contains(key.path) && mine == other && mine == common_default(key)) {
      of_all += (of_all.empty() ? "" : ", ") + key.path;
      continue;
    }
    std::string lead = key.path;
    lead.resize(std::max<std::size_t>(lead.size() + 2, 20), ' ');
    std::cout << core::wrapped(
        lead,
        mine + (mine == other ? "" : " (preset original: " + other + ")") + "  " + meaning(key),
        kListColumns, 22);
  }
  std::cout << core::wrapped("as every rule: ", of_all + " (docs/rules/README.md)", kListColumns,
                             2);
  if (!rule->presets.empty()) {
    std::cout << core::wrapped("presets: ", std::string(rule->presets), kListColumns, 2);
  }
  return kOk;
}

}  // namespace tocsin::app
