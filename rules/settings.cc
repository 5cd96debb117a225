// `rules:` and `engine:` of the configuration: names, presets, effective parameters and their hash.
#include <algorithm>
#include <cctype>
#include <map>

#include "core/identity.h"
#include "core/text.h"
#include "rules/contract/rule.h"
#include "rules/declared/read.h"
#include "rules/groups.h"
#include "rules/hosted/read.h"
#include "rules/native/read.h"

namespace tocsin::rules {
namespace {

std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '_' && c != '-') {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const RuleDescriptor& rule : builtin_rules()) names.emplace_back(rule.name);
  return names;
}

// Canonical JSON of what decides the rule's answers. Shared parameters and additions to the
// original count only when the user gave them, so that a new option does not rename every issue.
std::string hash_parameters(const std::vector<core::Parameter>& parameters, const Program& program,
                            Preset preset) {
  static constexpr std::string_view kShared[] = {
      "collection_names", "tensor_regex", "modes",    "workers",        "start_step", "end_step",
      "min_hits",         "clear_after",  "cooldown", "max_open_units", "severity"};
  core::ValueMap map;
  for (const core::Parameter& parameter : parameters) {
    const bool addition =
        std::find(std::begin(kShared), std::end(kShared), parameter.name) != std::end(kShared) ||
        std::find(program.extensions.begin(), program.extensions.end(), parameter.name) !=
            program.extensions.end();
    if (!addition || parameter.origin == "user") map.emplace_back(parameter.name, parameter.value);
  }
  if (preset == Preset::original) map.emplace_back("preset", "original");
  return core::params_hash(core::to_json(map, true));
}

void configure(const RuleDescriptor& rule, config::Reader& in, RuleSettings& out) {
  out.type = rule.name;
  out.version = rule.version;
  out.program = rule.read(in, out.preset);
  out.parameters = in.effective();
  out.params_hash = hash_parameters(out.parameters, *out.program, out.preset);
  for (const std::string& receiver : out.program->actions) {
    if (std::find(out.actions.begin(), out.actions.end(), receiver) == out.actions.end()) {
      out.actions.push_back(receiver);
    }
  }
  if (out.program->common.severity && !out.severity_set) {
    out.severity = core::severity_from(*out.program->common.severity).value_or(rule.severity);
    out.severity_set = true;
  }
}

// Values and defaults of a rule with these parameters: JSON is YAML.
void configure_from(const RuleDescriptor& rule, const std::string& with, RuleSettings& out,
                    config::Diagnostics& diagnostics) {
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  if (const auto given = config::Document::parse(with, "parameters", nothing, diagnostics)) {
    given->read(diagnostics, [&](config::Reader& in) { configure(rule, in, out); });
  }
}

const RuleDescriptor* named_rule(config::Reader& item, const std::string& use) {
  const RuleDescriptor* rule = find_rule(use);
  if (rule == nullptr) {
    std::string message = "unknown rule \"" + use + "\"";
    if (const std::string near = core::nearest(use, all_names()); !near.empty()) {
      message += "; did you mean " + near + "?";
    }
    item.error("use", message);
  }
  return rule;
}

void read_severity(config::Reader& item, RuleSettings& rule) {
  std::optional<std::string> severity;
  item.optional("severity", severity, "info, warning, error or critical; default: the rule's own");
  item.choices("severity", {"info", "warning", "error", "critical"});
  if (!severity) return;
  if (const auto parsed = core::severity_from(*severity)) {
    rule.severity = *parsed;
    rule.severity_set = true;
  } else {
    const std::string near = core::nearest(*severity, {"info", "warning", "error", "critical"});
    item.error("severity", "expected info, warning, error or critical" +
                               (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
}

void read_parameters(config::Reader& item, const RuleDescriptor& descriptor, RuleSettings& rule) {
  const bool given = item.section("with", "the rule's parameters (see its page)",
                                  [&](config::Reader& in) { configure(descriptor, in, rule); });
  if (given && rule.program) return;
  config::Diagnostics problems;
  configure_from(descriptor, "{}", rule, problems);
  for (const config::Diagnostic& problem : problems.items()) {
    if (given) continue;
    if (problem.grade == config::Grade::error) {
      item.error("use", problem.message);
    } else {
      item.note("use", problem.message);
    }
  }
}

// Which parameters there are depends on the rule.
void describe_parameters(config::Reader& item) {
  core::Value ignored;
  item.any("with", ignored, "the rule's parameters (see its page)");
  std::vector<config::Shape> shapes;
  for (const RuleDescriptor& rule : builtin_rules()) {
    config::Shape& shape = shapes.emplace_back();
    shape.values = {std::string(rule.name)};
    if (!rule.original_name.empty()) shape.values.emplace_back(rule.original_name);
    shape.values.insert(shape.values.end(), rule.aliases.begin(), rule.aliases.end());
    shape.read = [&rule](config::Reader& in) { rule.read(in, Preset::tocsin); };
  }
  item.depends("with", "use", shapes);
}

void read_builtin(config::Reader& item, RuleSettings& rule) {
  std::string use;
  std::string preset = "tocsin";
  item.optional("use", use, "name of a built-in rule, for instance exploding_tensor");
  item.optional("preset", preset, config::one_of({"tocsin", "original"}),
                "thresholds to start from: ours, or those of Amazon SageMaker Debugger");
  if (item.describing()) return describe_parameters(item);
  if (use.empty()) return item.error("use", "use must be the name of a rule");
  const RuleDescriptor* descriptor = named_rule(item, use);
  if (descriptor == nullptr) {
    core::Value ignored;  // what follows an unknown name cannot be checked
    item.any("with", ignored, "");
    return;
  }
  rule.preset = preset == "original" ? Preset::original : Preset::tocsin;
  if (!rule.severity_set) rule.severity = descriptor->severity;
  if (rule.name.empty()) rule.name = descriptor->name;
  read_parameters(item, *descriptor, rule);
}

void read_item(config::Reader& item, bool libraries, RulesConfig& out) {
  RuleSettings rule;
  item.optional("name", rule.name,
                "name of this rule in issues and routes; default: the type of a built-in one");
  item.optional("shadow", rule.shadow, "judge and record, but tell nobody");
  item.optional("actions", rule.actions, "receivers: a route of this rule's own to them");
  item.optional("runbook_url", rule.runbook_url, "link shown with every issue");
  read_severity(item, rule);
  if (item.describing() || item.has("use")) read_builtin(item, rule);
  if (item.describing() || item.has("source")) hosted::read(item, rule);
  if (item.describing() || item.has("library")) native::read(item, libraries, rule);
  const bool elsewhere = item.has("use") || item.has("source") || item.has("library");
  if (item.describing() || !elsewhere) declared::read(item, rule);
  item.exactly_one_of({"use", "when", "sequence", "source", "library"});
  item.only_beside("use", {"preset", "with"});
  item.only_beside("source", {"type", "class", "collections_to_save", "raw", "options", "with"});
  item.only_beside("library", {"type", "options", "with"});
  item.only_beside("when",
                   {"select", "let", "by", "window", "for", "clear_after", "cooldown", "evidence"},
                   {{"name"}, {"select", "let"}});
  item.only_beside("sequence",
                   {"within", "without", "by", "for", "clear_after", "cooldown", "evidence"},
                   {{"name"}, {"within"}});
  if (item.describing()) return;
  for (const RuleSettings& other : out.rules) {
    if (other.name == rule.name) {
      item.error("name", "two rules are called " + rule.name + ": give one of them a name");
      break;
    }
  }
  if (rule.program) out.rules.push_back(std::move(rule));
}

// A rule of a group as it is without parameters; one that `rules:` has already stays as it is there.
void add_group(const RuleGroup& group, RulesConfig& out) {
  for (const RuleDescriptor& each : builtin_rules()) {
    const bool known = std::any_of(
        out.rules.begin(), out.rules.end(),
        [&](const RuleSettings& one) { return one.type == each.name || one.name == each.name; });
    if (known || !group.holds(each)) continue;
    if (auto rule = make_rule(each.name)) out.rules.push_back(std::move(*rule));
  }
}

void read_groups(config::Reader& root, RulesConfig& out) {
  std::vector<std::string> names;
  std::vector<std::string> known;
  for (const RuleGroup& group : rule_groups()) known.emplace_back(group.name);
  root.optional("rule_groups", names,
                "groups of built-in rules, beside those under rules: default, all_pytorch, "
                "all_xgboost, all_profiler");
  root.choices("rule_groups", known);
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      const std::string near = core::nearest(name, known);
      root.error("rule_groups", "unknown group \"" + name + "\"" +
                                    (near.empty() ? ": expected default, all_pytorch, all_xgboost "
                                                    "or all_profiler"
                                                  : "; did you mean " + near + "?"));
      continue;
    }
    add_group(rule_groups()[static_cast<std::size_t>(found - known.begin())], out);
  }
}

}  // namespace

const RuleDescriptor* find_rule(std::string_view name) {
  const std::string wanted = folded(name);
  if (wanted.empty()) return nullptr;  // rules of our own have no original name
  for (const RuleDescriptor& rule : builtin_rules()) {
    if (folded(rule.name) == wanted || folded(rule.original_name) == wanted) return &rule;
    for (const std::string_view alias : rule.aliases) {
      if (folded(alias) == wanted) return &rule;
    }
  }
  return nullptr;
}

void read_rules(config::Reader& root, RulesConfig& out) {
  // Before any library is touched; the section itself is read by the program.
  const auto plugins = root.describing() ? std::nullopt : root.value("plugins");
  const bool* native = plugins ? core::as<bool>(core::find(*plugins, "native")) : nullptr;
  const bool libraries = native != nullptr && *native;
  std::map<std::string, std::string> paths;  // by name
  std::size_t number = 0;
  root.list(
      "rules", "what is wrong: built-in rules and their parameters",
      [&](config::Reader& item) {
        const std::size_t before = out.rules.size();
        read_item(item, libraries, out);
        const std::string path = "rules[" + std::to_string(number++) + "]";
        if (out.rules.size() > before) paths[out.rules.back().name] = path;
      },
      "use");
  read_groups(root, out);
  if (root.describing()) return;
  for (const std::string& name : complete(out)) {
    root.error("rules", "the rule " + name +
                            " stands here by itself, and another one that brings it along gives it "
                            "parameters: give them to " +
                            name);
  }
  declared::check_followed(root, out.rules, paths);
}

std::vector<std::string> complete(RulesConfig& rules) {
  std::vector<std::string> twice;
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    const auto program = rules.rules[i].program;  // the list may move
    for (const RuleSettings& part : program->brings()) {
      const bool known =
          std::any_of(rules.rules.begin(), rules.rules.end(),
                      [&](const RuleSettings& one) { return one.name == part.name; });
      if (!known) rules.rules.push_back(part);
      const bool given =
          std::any_of(part.parameters.begin(), part.parameters.end(),
                      [](const core::Parameter& parameter) { return parameter.origin == "user"; });
      if (known && given) twice.push_back(part.name);
    }
  }
  return twice;
}

RuleSettings make_rule_with(const RuleDescriptor& rule, Preset preset, const core::ValueMap& with,
                            config::Diagnostics& problems) {
  RuleSettings out;
  out.name = rule.name;
  out.preset = preset;
  out.severity = rule.severity;
  configure_from(rule, core::to_json(with), out, problems);
  return out;
}

void read_engine(config::Reader& root, EngineConfig& out) {
  root.section("engine", "how rules are run", [&](config::Reader& in) {
    in.optional("threads", out.threads, "engine threads; 0 = number of cores less one");
    in.optional("commit_interval", out.commit_interval, config::positive(),
                "longest time before positions are committed; issues are committed at once");
    in.optional("snapshot_interval", out.snapshot_interval, config::positive(),
                "time between snapshots of changed state");
    in.optional("join_grace", out.join_grace, "longest wait of the first step for all workers");
    in.optional(
        "idle_after", out.idle_after, config::positive(),
        "silence after which a step no longer waits for a worker (at least 5 median steps)");
    in.optional("forget_after", out.forget_after, config::positive(),
                "silence after which a run's state is dropped");
    in.optional(
        "lost_after", out.lost_after, config::positive(),
        "silence of all its processes, heartbeats included, after which a job counts as lost");
    in.optional("max_clock_skew", out.max_clock_skew, config::positive(),
                "times further in the future than this are ignored");
    in.optional("max_open_units", out.max_open_units, config::at_least(std::uint32_t{1}),
                "open issues per rule, kind, worker and attempt");
    in.optional(
        "max_units_per_run", out.max_units_per_run, config::at_least(std::uint32_t{1}),
        "largest number of tensors × workers × modes of a run; more are refused and counted");
    in.optional("max_runs", out.max_runs, config::at_least(std::uint32_t{1}),
                "runs known at once per engine thread; ended runs make room, further runs are "
                "refused, counted and reported");
    in.optional(
        "delivery", out.delivery, config::one_of({"exactly_once", "at_least_once"}),
        "exactly_once commits outputs and positions in one transaction; at_least_once makes an "
        "issue on Kafka readable as soon as it is judged, and may repeat it after a crash");
  });
}

core::Result<RuleSettings> make_rule(std::string_view use, Preset preset) {
  const RuleDescriptor* descriptor = find_rule(use);
  if (descriptor == nullptr) return core::not_found("unknown rule \"" + std::string(use) + "\"");
  config::Diagnostics problems;
  RuleSettings rule = make_rule_with(*descriptor, preset, {}, problems);
  if (!rule.program || problems.has_errors()) {
    return core::invalid_argument(problems.items().empty() ? "no program"
                                                           : problems.items().front().message);
  }
  return rule;
}

}  // namespace tocsin::rules
