#include "rules/declared/read.h"

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/collections.h"
#include "core/identity.h"
#include "core/text.h"
#include "rules/declared/fold_rule.h"
#include "rules/declared/other_rule.h"
#include "rules/declared/point_rule.h"
#include "rules/declared/read_sequence.h"
#include "rules/declared/row_rule.h"
#include "rules/declared/words.h"

namespace tocsin::rules::declared {
namespace {

using From = Selector::Source;

/// The texts of one item, as written.
struct Texts {
  std::optional<std::string> select;
  std::map<std::string, std::string> let;
  std::vector<std::string> by;
  std::optional<std::string> window;
  std::optional<std::string> when;
  std::optional<std::string> evidence;
  std::uint32_t hits = 1;
  std::uint32_t clear_after = 3;
  core::Duration cooldown = Common{}.cooldown;
};

void read_texts(config::Reader& item, Texts& texts) {
  item.optional("select", texts.select,
                "what a rule of your own looks at, for instance metric(\"loss\"){mode=\"train\"}");
  item.optional("let", texts.let,
                "several selections by name, for instance {t: 'metric(\"loss\")'}");
  item.optional("by", texts.by,
                "labels that make a unit of their own; default: all that the selection has");
  item.optional("window", texts.window,
                "points that aggregates take: last 50 steps, last 5m every 1m, every 60s, session "
                "30s, since start; default: last 1 step");
  item.optional("when", texts.when,
                "condition of a rule of your own, for instance mean(value) > 3");
  item.optional("for", texts.hits, config::at_least(std::uint32_t{1}),
                "hits in a row before it raises an issue");
  item.optional("clear_after", texts.clear_after, config::between(std::uint32_t{1}, 65535U),
                "healthy evaluations in a row that resolve an issue");
  item.optional("cooldown", texts.cooldown,
                "least time between two reports of an issue that continues");
  item.optional("evidence", texts.evidence,
                "sentence of the issue, with expressions in braces: norm {l2}, usual {median(l2)}");
}

void complain(config::Reader& item, const std::string& key, const Problem& problem) {
  item.error_at(key, problem.at, problem.message);
}

// Places count within the text of `key`.
bool read_selector(config::Reader& item, const std::string& key, const std::string& text,
                   const std::string& name, std::vector<Selected>& selected,
                   std::vector<Choice>& choices) {
  Parsed<Selector> selector = parse_selector(text);
  Choice choice;
  if (selector) selector.problem = Choice::make(selector.value, choice);
  if (!selector) {
    complain(item, key, *selector.problem);
    return false;
  }
  selected.push_back({name, std::move(selector.value)});
  choices.push_back(std::move(choice));
  return true;
}

// Labels of a unit when nothing is folded, beside the mode.
std::vector<std::string> unit_labels(From source) {
  switch (source) {
    case From::metric:
      return {"metric", "worker"};
    case From::system:
      return {"node", "device"};
    case From::step:
      return {"worker"};
    case From::span:
      return {"span", "worker"};
    default:
      return {"tensor", "worker"};
  }
}

// What `by` leaves out. `mode` and labels of the run are the same for all that is judged together.
std::vector<std::string> folded(config::Reader& item, const std::vector<std::string>& by,
                                const std::vector<std::string>& labels) {
  if (!item.has("by")) return {};
  std::vector<std::string> known = labels;
  known.insert(known.end(), {"run_uid", "mode"});
  for (std::size_t i = 0; i < by.size(); ++i) {
    if (std::find(known.begin(), known.end(), by[i]) != known.end()) continue;
    const std::string near = core::nearest(by[i], known);
    item.error("by[" + std::to_string(i) + "]",
               "this selection has no label " + by[i] +
                   (near.empty() ? ": expected " + listed(known) : "; did you mean " + near + "?"));
  }
  std::vector<std::string> out;
  for (const std::string& label : labels) {
    if (std::find(by.begin(), by.end(), label) == by.end()) out.push_back(label);
  }
  return out;
}

bool read_window(config::Reader& item, const std::string& text, Window& window) {
  const Parsed<Window> parsed = parse_window(text);
  if (!parsed) {
    complain(item, "window", *parsed.problem);
    return false;
  }
  window = parsed.value;
  if (window.kind == Window::Kind::last && window.size.steps &&
      window.size.amount > std::int64_t{kMostPoints}) {
    complain(item, "window",
             {window.at, "expected at most " + std::to_string(kMostPoints) +
                             " steps: a window that slides keeps its points; take `since start` "
                             "with ewma(), or `every …`, for longer ones"});
    return false;
  }
  return true;
}

// Of what decides the rule's answers, as far as it is given.
std::string hash_of(const std::vector<core::Parameter>& parameters) {
  core::ValueMap map;
  for (const core::Parameter& one : parameters) {
    if (one.name != "evidence" && one.name != "clear_after") map.emplace_back(one.name, one.value);
  }
  return core::params_hash(core::to_json(map, true));
}

std::vector<core::Parameter> parameters_of(const config::Reader& item) {
  static constexpr std::string_view kOurs[] = {"select",   "let",    "by",          "window",
                                               "when",     "for",    "clear_after", "evidence",
                                               "sequence", "within", "without"};
  std::vector<core::Parameter> out;
  for (core::Parameter& one : item.effective()) {
    const bool ours = std::find(std::begin(kOurs), std::end(kOurs), one.name) != std::end(kOurs);
    if (ours && one.origin == "user") out.push_back(std::move(one));
  }
  return out;
}

// The built-in collection that holds what `tensor(…)` selects: by a role that it asks for, or by a
// name that is spelled out as that collection's are ("gradient/conv.*"). Empty: any may, or one of
// the user's own, and then it is judged as far as it is captured.
std::string_view collection_of(const Selector& selector) {
  for (const Matcher& matcher : selector.matchers) {
    const auto role = core::role_from(matcher.value);
    if (matcher.name != "role" || matcher.op != "=" || !role) continue;
    const core::Collection* found = core::collection_of(*role);
    return found == nullptr ? std::string_view() : found->name;
  }
  const auto has = [&](std::string_view pattern) {
    return !pattern.empty() &&
           re2::RE2::PartialMatch(selector.argument, re2::RE2(re2::StringPiece(pattern)));
  };
  for (const core::Collection& one : core::builtin_collections()) {
    if (!one.roles.empty() && has(one.include) && !has(one.exclude)) return one.name;
  }
  return {};
}

std::vector<Need> needs_of(const Rule& rule) {
  std::vector<Need> out;
  for (const Selected& one : rule.selected) {
    std::string_view collection;
    if (one.selector.source == From::collection) collection = one.selector.argument;
    if (one.selector.source == From::tensor) collection = collection_of(one.selector);
    if (!collection.empty()) out.push_back({std::string(collection), rule.requests});
  }
  return out;
}

bool in_steps(const Window& window) {
  return window.kind != Window::Kind::session &&
         (window.hop ? window.hop->steps : window.size.steps);
}
bool of_one_mode(const std::vector<Choice>& choices) {
  const std::uint8_t modes = choices.front().modes();
  return std::all_of(choices.begin(), choices.end(),
                     [&](const Choice& one) { return one.modes() == modes; });
}

// Which shape of evaluation the rule takes; nullptr: none, which is reported.
std::shared_ptr<Program> shaped(config::Reader& item, Rule rule, std::vector<Choice> choices) {
  const From source = rule.selected.front().selector.source;
  if (!rule.selected.front().name.empty()) {
    for (const Selected& one : rule.selected) {
      if (one.selector.source != From::system) continue;
      item.error("let." + one.name,
                 "selections of `let` are of one worker: samples of a node stand alone");
      return nullptr;
    }
    if (!rule.folded.empty()) {
      item.error("by", "selections of `let` cannot be folded: leave `by` out");
      return nullptr;
    }
    if (rule.formula.cut() && in_steps(rule.formula.window) && !of_one_mode(choices)) {
      item.error(
          "window",
          "selections of different modes count steps of their own and have no pieces of steps in "
          "common: cut by time, take `last …` or `since start`, or the same modes");
      return nullptr;
    }
    return joint_program(std::move(rule), std::move(choices));
  }
  if (source == From::system) {
    if (rule.folded.empty()) return sample_program(std::move(rule), std::move(choices.front()));
    item.error("by", "each series of a node is judged by itself: write `by: [node, device]`");
    return nullptr;
  }
  const bool waits = !rule.folded.empty() || !rule.formula.hearings.empty();
  if (rule.other) return other_program(std::move(rule), std::move(choices.front()));
  if (!waits && source != From::step && source != From::span) {
    return row_program(std::move(rule), std::move(choices.front()));
  }
  return fold_program(std::move(rule), std::move(choices.front()));
}

// nullptr: something is wrong, and was reported.
void finish(config::Reader& item, const std::shared_ptr<Program>& program, const Texts& texts,
            RuleSettings& settings) {
  if (!program) return;
  if (!settings.severity_set) settings.severity = core::Severity::warning;
  program->common.min_hits = texts.hits;
  program->common.clear_after = texts.clear_after;
  program->common.cooldown = texts.cooldown;
  settings.type = kType;
  settings.parameters = parameters_of(item);
  settings.params_hash = hash_of(settings.parameters);
  settings.program = program;
}

void compile_item(config::Reader& item, const Texts& texts, RuleSettings& settings) {
  std::vector<Selected> selected;
  std::vector<Choice> choices;
  bool well = true;
  if (texts.select) {
    well = read_selector(item, "select", *texts.select, {}, selected, choices);
  }
  for (const auto& [name, text] : texts.let) {
    well = read_selector(item, "let." + name, text, name, selected, choices) && well;
  }
  if (selected.size() > kMostSources) {
    return item.error("let", "expected at most " + std::to_string(kMostSources) + " selections");
  }
  Draft draft;
  if (texts.window) well = read_window(item, *texts.window, draft.window) && well;
  if (!well) return;
  std::vector<std::string> labels = unit_labels(selected.front().selector.source);
  draft.folded = folded(item, texts.by, labels);
  draft.selected = std::move(selected);
  draft.when = *texts.when;
  draft.has_evidence = texts.evidence.has_value();
  if (texts.evidence) draft.evidence = *texts.evidence;
  for (const std::string& label : labels) {
    if (std::find(draft.folded.begin(), draft.folded.end(), label) == draft.folded.end()) {
      draft.labels.push_back(label);
    }
  }
  if (draft.selected.front().selector.source != From::system) draft.labels.emplace_back("mode");
  Rule rule;
  if (const auto complaint = compile(draft, rule)) {
    return complain(item, std::string(complaint->key), complaint->problem);
  }
  const bool by_mode =  // such units of `let` have their mode since version 2
      !rule.selected.front().name.empty() &&
      std::all_of(choices.begin(), choices.end(),
                  [&](const Choice& one) { return one.modes() == choices.front().modes(); });
  // across() leaves out what is not finite since version 2.
  if (by_mode || !rule.formula.folds.empty()) settings.version = "2";
  const std::vector<Need> needs = needs_of(rule);
  const std::vector<Followed> follows = rule.follows;
  const std::shared_ptr<Program> program = shaped(item, std::move(rule), std::move(choices));
  if (!program) return;
  program->needs = needs;
  program->follows = follows;
  finish(item, program, texts, settings);
}

}  // namespace

void read(config::Reader& item, RuleSettings& settings) {
  Texts texts;
  read_texts(item, texts);
  const bool sequence = item.describing() || item.has("sequence");
  SequenceKeys keys;
  if (sequence) read_sequence_keys(item, keys);
  if (item.describing()) return;
  if (!sequence && !texts.when) return;  // that it is missing is said by the caller
  if (settings.name.empty()) item.error("name", "a rule of your own needs a name");
  if (sequence) {
    keys.by = texts.by;
    keys.evidence = texts.evidence;
    return finish(item, sequence_of(item, keys), texts, settings);
  }
  if (texts.select.has_value() == !texts.let.empty()) {
    return item.error("when", "give exactly one of select or let: what does this rule look at?");
  }
  compile_item(item, texts, settings);
}

}  // namespace tocsin::rules::declared
