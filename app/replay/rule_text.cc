#include "app/replay/rule_text.h"

#include <algorithm>
#include <utility>

#include "config/config.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostRulesOfAText = 32;
constexpr const char* kRulesKey = "rules:";
constexpr const char* kTextName = "rule";

/// The text under a key of its own: no line of it can be a key beside `rules`, such as `include`.
struct Framed {
  std::string text;
  int lines = 0;    // that stand in front of the text
  int columns = 0;  // and in front of each line
};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// A line without what ends it; `rest` begins behind that.
std::string_view take_text_line(std::string_view& rest) {
  const std::size_t end = rest.find_first_of("\r\n");
  const std::string_view line = rest.substr(0, end);
  if (end == std::string_view::npos) {
    rest = {};
  } else {
    rest.remove_prefix(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  return line;
}

std::string_view stripped(std::string_view line) {
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  return line;
}

bool has_words(std::string_view line) { return !line.empty() && line.front() != '#'; }

Framed under_rules_key(std::string_view yaml) {
  Framed out;
  std::string_view rest = yaml;
  std::string_view first;
  std::string skipped;
  while (!rest.empty() && !has_words(first)) {
    const std::string_view line = take_text_line(rest);
    first = stripped(line);
    const bool key = first == kRulesKey && line.starts_with(kRulesKey);
    if (key || first == "---") {
      first = {};  // the key is ours
    } else if (has_words(first)) {
      rest = yaml.substr(static_cast<std::size_t>(line.data() - yaml.data()));
      break;
    }
    skipped += '\n';
  }
  // A line of its own for each that was passed over: numbers of lines stay those of the text.
  out.lines = 1;
  out.columns = 2;
  out.text = std::string(kRulesKey) + "\n" + skipped;
  const bool list = first.starts_with('-') || first.starts_with('[');
  if (!list) {
    out.text += "  -\n";
    ++out.lines;
    out.columns = 4;
  }
  while (!rest.empty()) {
    const std::string_view line = take_text_line(rest);
    if (!stripped(line).empty()) out.text.append(static_cast<std::size_t>(out.columns), ' ');
    out.text.append(line).append("\n");
  }
  return out;
}

// What would be read from a file or run by another program.
std::optional<RuleTextProblem> foreign_rule(const core::Value& rules) {
  const auto* list = core::as<core::ValueList>(rules);
  if (list == nullptr) return std::nullopt;
  for (const core::Value& item : *list) {
    const auto* members = core::as<core::ValueMap>(item);
    if (members == nullptr) continue;
    for (const char* key : {"source", "library", "class"}) {
      if (core::find(*members, key) == nullptr) continue;
      return RuleTextProblem{0, 0,
                             std::string("a rule with \"") + key +
                                 "\" is a program: it is not taken from a text that is sent, but "
                                 "from the server's configuration, or judge it with tocsin replay"};
    }
  }
  return std::nullopt;
}

std::optional<RuleTextProblem> control_character(std::string_view yaml) {
  for (const char c : yaml) {
    const bool plain = static_cast<unsigned char>(c) >= ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!plain || c == '\x7f')
      return RuleTextProblem{0, 0, "expected YAML: the text has a control character"};
  }
  return std::nullopt;
}

}  // namespace

RuleTextAnswer read_rule_text(std::string_view yaml) {
  RuleTextAnswer out;
  if (const auto wrong = control_character(yaml)) return {{}, {*wrong}};
  const Framed text = under_rules_key(yaml);
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  config::Diagnostics diagnostics;
  const auto document = config::Document::parse(text.text, kTextName, nothing, diagnostics);
  if (document && !diagnostics.has_errors()) {
    const auto items = document->value("rules");
    if (const auto wrong = items ? foreign_rule(*items) : std::nullopt) return {{}, {*wrong}};
    document->read(diagnostics, [&](config::Reader& root) { rules::read_rules(root, out.rules); });
  }
  diagnostics.sort(kTextName);
  for (const config::Diagnostic& one : diagnostics.items()) {
    if (one.grade != config::Grade::error) continue;
    const int line = one.location.line - text.lines;
    out.problems.push_back({std::max(line, 0),
                            line > 0 ? std::max(one.location.column - text.columns, 1) : 0,
                            one.message});
  }
  if (!out.problems.empty()) return out;
  if (out.rules.rules.empty()) {
    out.problems.push_back({0, 0, "expected a rule, such as - use: exploding_tensor"});
  } else if (out.rules.rules.size() > kMostRulesOfAText) {
    out.problems.push_back({0, 0,
                            "expected at most " + std::to_string(kMostRulesOfAText) +
                                " rules, got " + std::to_string(out.rules.rules.size())});
  }
  return out;
}

std::string rule_text_problems(const std::vector<RuleTextProblem>& problems) {
  std::string out;
  for (const RuleTextProblem& one : problems) {
    if (!out.empty()) out += "\n";
    if (one.line > 0)
      out += "line " + std::to_string(one.line) + ", column " + std::to_string(one.column) + ": ";
    out += core::visible(one.message, 400);
  }
  return out;
}

std::optional<std::string> rule_text(const rules::RuleSettings& rule) {
  const bool builtin = rules::find_rule(rule.type) != nullptr;
  const auto has = [&](std::string_view name) {
    return std::any_of(rule.parameters.begin(), rule.parameters.end(),
                       [&](const core::Parameter& one) { return one.name == name; });
  };
  if (rule.hosted || (!builtin && !has("when") && !has("sequence"))) return std::nullopt;
  std::string out = "- name: " + core::to_json(rule.name) + "\n";
  if (builtin) {
    out += "  use: " + rule.type + "\n";
    if (rule.preset == rules::Preset::original) out += "  preset: original\n";
    if (!rule.parameters.empty()) out += "  with:\n";
  }
  const char* const indent = builtin ? "    " : "  ";
  for (const core::Parameter& one : rule.parameters) {
    // What has no value is not set by writing so.
    const bool unset = one.value.is_null();
    out += indent;
    if (unset) out += "# ";
    out += one.name + ": " + (unset ? "" : core::to_json(one.value)) +
           (one.origin == "user" || unset ? "\n" : "  # default\n");
  }
  return out;
}

}  // namespace tocsin::app
