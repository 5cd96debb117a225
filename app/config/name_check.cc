// Names that nothing produces, and keys that stand in the wrong place.
#include <algorithm>
#include <regex>

#include "app/config/alarm_check.h"
#include "app/health/own_issues.h"
#include "collectors/hook/hook.h"
#include "core/collections.h"
#include "core/text.h"

namespace tocsin::app {
namespace {

using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class NameCheck {
 public:
  NameCheck(const config::Reader& root, const AppConfig& config)
      : root_(root),
        config_(config),
        labels_(rules::issue_labels().begin(), rules::issue_labels().end()),
        collections_(core::collection_names()) {
    for (const auto own :
         {rules::own_issues(), routing::own_issues(), actions::own_issues(), app::own_issues()}) {
      for (const core::OwnIssue& issue : own) {
        rules_.emplace_back(issue.name);
        labels_.insert(labels_.end(), issue.labels.begin(), issue.labels.end());
      }
    }
    for (const auto& [name, value] : config.labels) labels_.push_back(name);
    for (const auto& rule : config.rules.rules) rules_.push_back(rule.name);
    for (const auto& collection : config.capture.collections) {
      if (defines(collection)) collections_.push_back(collection.name);
    }
  }

  void collections() const {
    const auto given = root_.value("capture.collections");
    const auto* list = given ? core::as<core::ValueList>(*given) : nullptr;
    for (std::size_t i = 0; i < config_.capture.collections.size(); ++i) {
      const std::string& name = config_.capture.collections[i].name;
      collection(list != nullptr ? "capture.collections[" + std::to_string(i) + "]"
                                 : "capture.collections." + name,
                 name);
    }
    for (std::size_t i = 0; root_.value(item(i)); ++i) {
      for (const char* key : {".with.collection_names", ".options.collection_names",
                              ".collections_to_save", ".raw"}) {
        each_text(item(i) + key,
                  [&](const auto& path, const auto& name) { collection(path, name); });
      }
      each_selection(i, "collection",
                     [&](const auto& path, const auto& name) { collection(path, name); });
    }
  }

  void metrics() const {
    for (std::size_t i = 0; root_.value(item(i)); ++i) {
      each_selection(i, "system", [&](const std::string& path, const std::string& series) {
        unknown(path, series, known_series(), "no collector gathers a series",
                "only another producer sends it");
      });
      auto use = root_.value(item(i) + ".use");
      if (!use) use = root_.value(item(i));  // a bare name
      const auto* name = use ? std::get_if<std::string>(&use->storage()) : nullptr;
      const auto* rule = name != nullptr ? rules::find_rule(*name) : nullptr;
      if (rule == nullptr) continue;
      for (const std::string_view metric : rule->metrics) gathered(item(i), *rule, metric);
    }
  }

  void route(const std::string& path) const {
    each_text(path + ".matchers", [&](const auto& at, const auto& text) { matchers(at, text); });
    each_text(path + ".immediate_on",
              [&](const auto& at, const auto& text) { matchers(at, text); });
    each_text(path + ".group_by", [&](const std::string& at, const std::string& name) {
      if (name != "...") label(at, name);
    });
    for (std::size_t i = 0;; ++i) {
      const std::string child = path + ".routes[" + std::to_string(i) + "]";
      if (!root_.value(child)) return;
      route(child);
    }
  }

  void inhibition() const {
    for (std::size_t i = 0;; ++i) {
      const std::string rule = "inhibit_rules[" + std::to_string(i) + "]";
      if (!root_.value(rule)) return;
      for (const char* side : {".source_matchers", ".target_matchers"}) {
        each_text(rule + side, [&](const auto& at, const auto& text) { matchers(at, text); });
      }
      each_text(rule + ".equal", [&](const auto& at, const auto& name) { label(at, name); });
    }
  }

  void conditions() const {
    for (const auto& action : config_.receivers.integrations) {
      const std::string receiver = "receivers." + action.receiver;
      std::string path = receiver + "[" + std::to_string(action.index) + "]." + action.type;
      if (!root_.value(path)) path = receiver + "." + action.type;
      each_text(path + ".when", [&](const auto& at, const auto& text) { matchers(at, text); });
    }
  }

 private:
  // A body that selects makes a collection; a bare name must be known.
  static bool defines(const hook::CollectionConfig& collection) {
    return !collection.include.empty() || !collection.roles.empty();
  }

  static std::string item(std::size_t index) { return "rules[" + std::to_string(index) + "]"; }

  /// A text, or each text of a list, with its path.
  template <typename Use>
  void each_text(const std::string& path, const Use& use) const {
    const auto value = root_.value(path);
    if (!value) return;
    if (const auto* text = core::as<std::string>(*value)) return use(path, *text);
    const auto* list = core::as<core::ValueList>(*value);
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
      const auto* text = core::as<std::string>((*list)[i]);
      if (text != nullptr) use(path + "[" + std::to_string(i) + "]", *text);
    }
  }

  /// What the selections of rule `index` name by this source: `collection("gradients")`.
  template <typename Use>
  void each_selection(std::size_t index, const std::string& source, const Use& use) const {
    const auto look = [&](const std::string& path, const core::Value* value) {
      const auto* text = value != nullptr ? core::as<std::string>(*value) : nullptr;
      if (text == nullptr) return;
      std::smatch found;
      const std::regex named("^\\s*" + source + "\\s*\\(\\s*(?:\"([^\"]*)\"|'([^']*)')");
      if (!std::regex_search(*text, found, named)) return;
      use(path, found[1].matched ? found[1].str() : found[2].str());
    };
    const std::string rule = item(index);
    if (const auto select = root_.value(rule + ".select")) look(rule + ".select", &*select);
    const auto let = root_.value(rule + ".let");
    const auto* map = let ? core::as<core::ValueMap>(*let) : nullptr;
    if (map == nullptr) return;
    for (const auto& [name, value] : *map) look(rule + ".let." + name, &value);
  }

  /// Series that a collector gathers or a rule judges.
  static const Names& known_series() {
    static const Names kNames = [] {
      Names out;
      for (const auto& collector : collectors::builtin_collectors()) {
        for (const auto& series : collector.gathers) out.emplace_back(series.metric);
      }
      for (const auto& rule : rules::builtin_rules()) {
        out.insert(out.end(), rule.metrics.begin(), rule.metrics.end());
      }
      return out;
    }();
    return kNames;
  }

  /// Near a known name it is most likely misspelt; else `outside` says who could make it true.
  void unknown(const std::string& path, const std::string& name, const Names& known,
               const std::string& what, const std::string& outside) const {
    if (has(known, name)) return;
    if (const std::string near = core::nearest(name, known); !near.empty()) {
      root_.warning(path, what + " \"" + name + "\"; did you mean \"" + near + "\"?");
    } else {
      root_.note(path, what + " \"" + name + "\"; " + outside);
    }
  }

  /// Another agent may gather it, on another node or with another file: a note, no more.
  void gathered(const std::string& path, const rules::RuleDescriptor& rule,
                std::string_view metric) const {
    std::string gatherer;
    for (const auto& collector : collectors::builtin_collectors()) {
      const bool gathers = std::any_of(collector.gathers.begin(), collector.gathers.end(),
                                       [&](const auto& series) { return series.metric == metric; });
      if (gathers && has(config_.collect.collectors, std::string(collector.name))) return;
      if (gathers) gatherer = collector.name;
    }
    const std::string reads =
        std::string(rule.name) + " judges " + std::string(metric) + ", which ";
    root_.note(path,
               gatherer.empty()
                   ? reads + "no collector of this build gathers: only another producer sends it"
                   : reads + "is gathered where `collect.collectors` names " + gatherer);
  }

  void collection(const std::string& path, const std::string& name) const {
    unknown(path, name, collections_, "nothing fills a collection",
            "only a script that saves into it does");
  }

  void label(const std::string& path, const std::string& name) const {
    unknown(path, name, labels_, "no rule gives its issues a label",
            "only jobs that bring it (watch(labels=…)) or `labels:` do");
  }

  void matchers(const std::string& path, const std::string& text) const {
    const auto parsed = routing::Matchers::parse(text);
    if (!parsed) return;
    for (const auto& term : parsed->terms()) {
      label(path, term.name);
      for (const std::string& value : alternatives(term)) matched(path, term.name, value);
    }
  }

  void matched(const std::string& path, const std::string& name, const std::string& value) const {
    static const Names kSeverities{"info", "warning", "error", "critical"};
    static const Names kModes{"train", "eval", "predict", "global"};
    const std::string outside = "only another producer of issues makes it";
    if (name == "severity") unknown(path, value, kSeverities, "no rule has the severity", outside);
    if (name == "mode") unknown(path, value, kModes, "no issue has the mode", outside);
    if (name == "rule") unknown(path, value, rules_, "no rule of this file is called", outside);
    if (name == "cluster") {
      unknown(path, value, {config_.cluster}, "this cluster is not called", outside);
    }
  }

  /// The values that a term names in so many words: all of them, or none.
  static Names alternatives(const routing::Matchers::Term& term) {
    const bool regex =
        term.op == routing::MatchOperator::regex || term.op == routing::MatchOperator::not_regex;
    if (term.value.empty()) return {};
    if (!regex) return {term.value};
    Names out(1);
    for (const char c : term.value) {
      if (c == '|') {
        out.emplace_back();
      } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-') {
        out.back() += c;
      } else {
        return {};
      }
    }
    return out;
  }

  const config::Reader& root_;
  const AppConfig& config_;
  Names labels_;
  Names rules_;
  Names collections_;
};

std::string last_key(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// "rules[2].threshold" → "rules[2]"; empty: it is not within a rule.
std::string rule_item(const std::string& path) {
  return path.starts_with("rules[") ? path.substr(0, path.find(']') + 1) : std::string();
}

// A parameter beside `with`, misspelt too unless `near` is false, or a key of the rule inside it.
std::string misplaced_in_rule(const config::Document& document, const std::string& path,
                              bool near) {
  const std::string item = rule_item(path);
  if (item.empty()) return {};
  const std::string key = last_key(path);
  const auto use = document.value(item + ".use");
  const auto* name = use ? core::as<std::string>(*use) : nullptr;
  if (name == nullptr) return {};
  if (path.starts_with(item + ".with.")) {
    const Names beside{"use", "name", "preset", "shadow", "actions", "runbook_url"};
    return has(beside, key) ? "it belongs beside `with`, not into it" : "";
  }
  const rules::RuleDescriptor* rule = rules::find_rule(*name);
  if (rule == nullptr) return {};
  // As declared: some rules cannot be made without a parameter.
  Names parameters;
  for (const config::KeyDoc& parameter :
       config::describe([&](config::Reader& in) { (void)rule->read(in, rules::Preset::tocsin); })) {
    parameters.push_back(parameter.path);
  }
  const std::string meant = has(parameters, key) ? key
                            : near               ? core::nearest(key, parameters)
                                                 : std::string();
  if (meant.empty()) return {};
  return std::string(meant == key ? "it is" : "did you mean \"" + meant + "\"? That is") +
         " a parameter of " + std::string(rule->name) + ": write `with: {" + meant + ": …}`";
}

// Where else a key of this name is known: "`http`", or empty when that would be a guess.
std::string other_home(const std::vector<config::KeyDoc>& keys, const std::string& key) {
  Names homes;
  for (const auto& doc : keys) {
    const std::size_t dot = doc.path.rfind('.');
    if (dot == std::string::npos || doc.path.substr(dot + 1) != key) continue;
    homes.push_back("`" + doc.path.substr(0, dot) + "`");
  }
  if (homes.empty() || homes.size() > 3) return {};
  std::string out = "it belongs into " + homes[0];
  for (std::size_t i = 1; i < homes.size(); ++i) out += " or " + homes[i];
  return out;
}

}  // namespace

void check_names(const config::Reader& root, const AppConfig& config) {
  const NameCheck check(root, config);
  check.collections();
  check.metrics();
  check.route("route");
  check.inhibition();
  check.conditions();
}

void explain_misplaced(const config::Document& document, config::Diagnostics& diagnostics) {
  std::vector<config::KeyDoc> keys;
  for (config::Diagnostic& item : diagnostics.items()) {
    if (!item.unknown_key) continue;
    const bool guessed = item.message.find("did you mean") != std::string::npos;
    std::string where = misplaced_in_rule(document, item.path, !guessed);
    if (where.empty() && !guessed) {
      if (keys.empty()) {
        keys = config::describe([](config::Reader& in) {
          AppConfig defaults;
          read(in, defaults);
        });
      }
      where = other_home(keys, last_key(item.path));
    }
    if (!where.empty()) item.message = "unknown key \"" + last_key(item.path) + "\"; " + where;
  }
}

}  // namespace tocsin::app
