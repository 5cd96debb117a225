#include "app/replay/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>
#include <utility>

#include "app/replay/rule_items.h"
#include "app/replay/sweep_values.h"
#include "core/text.h"

namespace tocsin::app {
namespace {

struct Ask {
  std::string rule;
  std::string parameter;
  std::string values;
};

core::Result<Ask> parse_ask(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return sweep_error(
        "expected [RULE.]PARAMETER=LOW..HIGH[:STEPS] or [RULE.]PARAMETER=A,B,C, got " + text);
  }
  Ask out;
  out.parameter = text.substr(0, equals);
  out.values = text.substr(equals + 1);
  if (const std::size_t dot = out.parameter.rfind('.'); dot != std::string::npos) {
    out.rule = out.parameter.substr(0, dot);
    out.parameter.erase(0, dot + 1);
  }
  return out;
}

const core::Parameter* find_parameter(const rules::RuleSettings& rule, const std::string& name) {
  for (const auto& one : rule.parameters) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = core::nearest(word, known);
  return near.empty() ? "" : "; did you mean \"" + near + "\"?";
}

/// As its page has it: "integer", "number", "duration", "string", …
std::string type_of(const rules::RuleSettings& rule, const std::string& parameter) {
  const auto* descriptor = rules::find_rule(rule.type);
  const auto keys = config::describe([&](config::Reader& in) {
    if (descriptor != nullptr) (void)descriptor->read(in, rule.preset);
  });
  for (const config::KeyDoc& key : keys) {
    if (key.path == parameter) return key.type;
  }
  return "map";
}

constexpr const char* kLimit = "limit";

bool is_own(const rules::RuleSettings& rule) { return rules::find_rule(rule.type) == nullptr; }

/// A rule of one's own in YAML: its text is among its parameters.
bool is_declared(const rules::RuleSettings& rule) {
  return is_own(rule) && !rule.hosted &&
         (find_parameter(rule, "when") != nullptr || find_parameter(rule, "sequence") != nullptr);
}

/// Of a rule in Python: what its value is, in its configuration. Original rules are given their
/// numbers as texts.
std::string hosted_type(const rules::RuleSettings& rule, const std::string& parameter) {
  const core::Parameter* one = find_parameter(rule, parameter);
  if (one == nullptr) return "map";
  if (core::as<bool>(one->value) != nullptr) return "boolean";
  if (const auto* text = core::as<std::string>(one->value)) {
    return sweep_number(*text) ? "number" : core::parse_duration(*text) ? "duration" : "string";
  }
  const bool number =
      core::as<std::int64_t>(one->value) != nullptr || core::as<double>(one->value) != nullptr;
  return number ? "number" : "list";
}

/// Of a rule of one's own in YAML.
std::string own_type(const std::string& parameter) {
  if (parameter == "for" || parameter == "clear_after") return "integer";
  if (parameter == "window") return "string";
  return parameter == "within" || parameter == kLimit ? "number" : "text";
}

/// A rule of one's own with `when`.
bool has_condition(const rules::RuleSettings& rule) {
  return is_declared(rule) && find_parameter(rule, "when") != nullptr;
}

/// Of a rule of one's own the parameters that it has been given are there, and some always.
bool has_parameter(const rules::RuleSettings& rule, const std::string& parameter) {
  if (is_declared(rule) && own_type(parameter) == "integer") return true;
  if (has_condition(rule) && parameter == kLimit) return true;
  return find_parameter(rule, parameter) != nullptr;
}

core::Result<const rules::RuleSettings*> rule_of(const Ask& ask, const rules::RulesConfig& rules) {
  std::vector<const rules::RuleSettings*> having;
  std::vector<std::string> names;
  std::vector<std::string> parameters;
  for (const auto& rule : rules.rules) {
    names.push_back(rule.name);
    if (!ask.rule.empty() && ask.rule != rule.name) continue;
    if (has_parameter(rule, ask.parameter)) having.push_back(&rule);
    const bool own = is_declared(rule);
    for (const auto& one : rule.parameters) parameters.push_back(one.name);
    if (own) parameters.insert(parameters.end(), {"for", "clear_after"});
    if (has_condition(rule)) parameters.emplace_back(kLimit);
  }
  if (!ask.rule.empty() && std::find(names.begin(), names.end(), ask.rule) == names.end()) {
    return sweep_error("there is no rule \"" + ask.rule + "\" among those that judge" +
                       did_you_mean(ask.rule, names));
  }
  if (having.empty()) {
    return sweep_error((ask.rule.empty() ? "no rule has" : ask.rule + " has no") +
                       (ask.rule.empty() ? " a parameter \"" : " parameter \"") + ask.parameter +
                       "\"" + did_you_mean(ask.parameter, parameters));
  }
  if (having.size() == 1) return having.front();
  std::string all;
  for (const auto* rule : having) all += (all.empty() ? "" : ", ") + rule->name;
  return sweep_error("several rules have a parameter \"" + ask.parameter + "\": " + all +
                     "; say which, for instance " + having.front()->name + "." + ask.parameter +
                     "=" + ask.values);
}

core::Result<rules::RuleSettings> sweep_rule(core::ValueList items, const std::string& name) {
  auto rule = first_rule(std::move(items), "--sweep");
  return rule ? std::move(rule) : sweep_error(name + ": " + rule.error().message);
}

/// Of a rule of one's own in YAML: `limit` is the first number in `when` that stands by itself right
/// of a comparison; `within` counts steps or is a duration, as it is there.
core::Result<core::ValueMap> own_variant(const rules::RuleSettings& rule,
                                         const std::string& parameter, const core::Value& value) {
  const auto* text = core::as<std::string>(value);
  const std::string shown = text != nullptr ? *text : core::to_json(value);
  core::ValueMap item;
  bool replaced = false;
  for (const auto& one : rule.parameters) {
    const auto* words = core::as<std::string>(one.value);
    if (one.name == "when" && parameter == kLimit && words != nullptr) {
      static const std::regex kNumber(
          R"(((?:[<>]=?|[=!]=)\s*)-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![0-9.eE])(?!\s*[-+*/(])(?!\s*%\s*[-+*/]))");
      replaced = std::regex_search(*words, kNumber);
      item.emplace_back("when", std::regex_replace(*words, kNumber, "$1 " + shown,
                                                   std::regex_constants::format_first_only));
    } else if (one.name == parameter) {
      const bool steps = parameter == "within" && text == nullptr;
      item.emplace_back(one.name, steps ? core::Value(shown + " steps") : value);
      replaced = true;
    } else {
      item.emplace_back(one.name, one.value);
    }
  }
  if (!replaced && own_type(parameter) == "integer") {
    item.emplace_back(parameter, value);
  } else if (!replaced) {
    return sweep_error(rule.name + " has no " + parameter +
                       " to sweep: no number stands by itself right of a comparison in its `when`");
  }
  return item;
}

/// A whole number stays one where one was given: a rule in Python may count with it.
core::Value as_given(const core::Value& value, const core::Value& given) {
  const auto* number = core::as<double>(value);
  const bool counted = core::as<std::int64_t>(given) != nullptr;
  if (number == nullptr || !counted || std::floor(*number) != *number) return value;
  return static_cast<std::int64_t>(*number);
}

core::ValueMap hosted_variant(const rules::RuleSettings& rule, const std::string& parameter,
                              const core::Value& value) {
  const auto& arguments = rule.hosted->parameters;
  core::ValueMap with;
  core::ValueMap options;
  for (const auto& one : rule.parameters) {
    auto& out = core::find(arguments, one.name) != nullptr ? with : options;
    out.emplace_back(one.name, one.name == parameter ? as_given(value, one.value) : one.value);
  }
  core::ValueMap item{{"type", rule.type}, {"source", rule.hosted->source}};
  if (!rule.hosted->class_name.empty()) item.emplace_back("class", rule.hosted->class_name);
  if (!with.empty()) item.emplace_back("with", std::move(with));
  if (!options.empty()) item.emplace_back("options", std::move(options));
  return item;
}

/// The rule with one parameter replaced, read like one of a configuration. `all`: those that it may
/// follow.
core::Result<rules::RuleSettings> variant(const rules::RuleSettings& rule,
                                          const std::string& parameter, const core::Value& value,
                                          const std::string& name, const rules::RulesConfig& all) {
  if (rule.hosted) {
    core::ValueMap item = hosted_variant(rule, parameter, value);
    item.emplace_back("name", name);
    return sweep_rule(core::ValueList{std::move(item)}, name);
  }
  if (is_own(rule)) {
    auto item = own_variant(rule, parameter, value);
    if (!item) return item.error();
    item->emplace_back("name", name);
    core::ValueList items{std::move(*item)};
    for (const auto& other : all.rules) {  // by their names only: they are judged as they are
      items.emplace_back(
          core::ValueMap{{"name", other.name}, {"select", "step()"}, {"when", "true"}});
    }
    return sweep_rule(std::move(items), name);
  }
  core::ValueMap with;
  for (const auto& one : rule.parameters) {
    if (one.origin == "user" && one.name != parameter) with.emplace_back(one.name, one.value);
  }
  with.emplace_back(parameter, value);
  const bool original = rule.preset == rules::Preset::original;
  const core::Value item = core::ValueMap{{"name", name},
                                          {"use", rule.type},
                                          {"preset", original ? "original" : "tocsin"},
                                          {"with", std::move(with)}};
  return sweep_rule(core::ValueList{item}, name);
}

}  // namespace

core::Result<Sweep> make_sweep(const std::string& text, rules::RulesConfig& rules) {
  const auto ask = parse_ask(text);
  if (!ask) return ask.error();
  const auto rule = rule_of(*ask, rules);
  if (!rule) return rule.error();
  const rules::RuleSettings base = **rule;
  if (is_own(base) && !base.hosted && !is_declared(base)) {
    return sweep_error(base.name + " is a rule of a shared object: its parameters are not swept");
  }
  const std::string type = base.hosted    ? hosted_type(base, ask->parameter)
                           : is_own(base) ? own_type(ask->parameter)
                                          : type_of(base, ask->parameter);
  static const std::array<std::string_view, 5> kSwept{"integer", "number", "duration", "boolean",
                                                      "string"};
  if (std::find(kSwept.begin(), kSwept.end(), type) == kSwept.end()) {
    return sweep_error(base.name + "." + ask->parameter + " is a " +
                       (type == "texts" ? "list" : type) +
                       ": only numbers, durations, switches and words are swept");
  }
  const auto values = sweep_values(ask->values, type);
  if (!values) return values.error();
  Sweep out{base.name, ask->parameter, {}};
  rules::RulesConfig varied;
  for (const core::Value& value : *values) {
    const auto* duration = core::as<std::string>(value);
    const std::string shown = duration != nullptr ? *duration : core::to_json(value);
    out.values.push_back({shown, base.name + "@" + shown});
    auto one = variant(base, ask->parameter, value, out.values.back().rule, rules);
    if (!one) return one.error();
    varied.rules.push_back(std::move(*one));
  }
  // What it follows hits as before; nothing is shown of it.
  for (const core::Parameter& one : base.parameters) {
    if (one.name != "sequence" && one.name != "when") continue;
    varied.rules.insert(varied.rules.end(), rules.rules.begin(), rules.rules.end());
    break;
  }
  rules = std::move(varied);
  return out;
}

}  // namespace tocsin::app
