#include "rules/declared/read_sequence.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "core/text.h"
#include "rules/contract/clock_rule.h"
#include "rules/declared/read.h"
#include "rules/declared/sequence_rule.h"
#include "rules/declared/words.h"

namespace tocsin::rules::declared {
namespace {

constexpr std::size_t kMostLinks = 16;
const std::vector<std::string>& shared_labels() {
  static const std::vector<std::string> kLabels{"worker", "tensor", "metric", "mode", "run_uid"};
  return kLabels;
}

bool check_by(config::Reader& item, const std::vector<std::string>& by) {
  bool well = true;
  for (std::size_t i = 0; i < by.size(); ++i) {
    const auto& known = shared_labels();
    if (std::find(known.begin(), known.end(), by[i]) != known.end()) continue;
    const std::string near = core::nearest(by[i], known);
    item.error("by[" + std::to_string(i) + "]",
               "hits of rules share no label " + by[i] +
                   (near.empty() ? ": expected " + listed(known) : "; did you mean " + near + "?"));
    well = false;
  }
  return well;
}

std::optional<Template> evidence_of(config::Reader& item, const SequenceKeys& keys) {
  if (!keys.evidence) return std::nullopt;
  Parsed<Template> text = parse_template(*keys.evidence);
  if (!text) {
    item.error_at("evidence", text.problem->at, text.problem->message);
    return std::nullopt;
  }
  std::vector<std::string> known = sequence_names();
  known.insert(known.end(), keys.by.begin(), keys.by.end());
  for (const Node& node : text.value.expressions) {
    const bool there = node.kind == Node::Kind::name && node.owner.empty() &&
                       std::find(known.begin(), known.end(), node.text) != known.end();
    if (there) continue;
    const std::string near = core::nearest(node.text, known);
    item.error_at("evidence", node.at,
                  "a sequence tells of " + listed(known) +
                      (near.empty() ? "" : "; did you mean " + near + "?"));
  }
  return std::move(text.value);
}

// "a follows b, which follows a"; empty: it ends somewhere.
std::string circle_of(const RuleSettings& rule, const std::vector<RuleSettings>& rules) {
  std::set<std::string> seen;
  const std::function<std::string(const RuleSettings&)> walk =
      [&](const RuleSettings& one) -> std::string {
    for (const Followed& next : one.program->follows) {
      if (next.rule == rule.name) return next.rule;
      if (!seen.insert(next.rule).second) continue;
      for (const RuleSettings& other : rules) {
        if (other.name != next.rule) continue;
        if (const std::string rest = walk(other); !rest.empty()) {
          return next.rule + ", which follows " + rest;
        }
      }
    }
    return {};
  };
  return walk(rule);
}

std::string problem_of(const Followed& followed, const std::vector<RuleSettings>& rules) {
  std::vector<std::string> names;
  for (const RuleSettings& other : rules) {
    names.push_back(other.name);
    if (other.name != followed.rule) continue;
    if (other.hosted) {
      return other.name + " is judged by a process of its own: no rule here can go by it";
    }
    const bool clock = dynamic_cast<const ClockProgram*>(other.program.get()) != nullptr;
    if (clock || !other.program->step_clock()) {
      return other.name + " is judged at times, not at steps: no rule can go by it";
    }
    return {};
  }
  const std::string near = core::nearest(followed.rule, names);
  return "no rule is called " + followed.rule +
         (near.empty() ? "" : "; did you mean " + near + "?");
}

}  // namespace

void read_sequence_keys(config::Reader& item, SequenceKeys& keys) {
  item.optional("sequence", keys.sequence,
                "rules of this file that hit one after another, by their names; or one, with "
                "without");
  item.optional("within", keys.within,
                "how long the sequence may take, from its first hit to its last: 50 steps, 5m");
  item.optional("without", keys.without,
                "rules none of which may hit in between; of one rule: after it");
}

std::shared_ptr<Program> sequence_of(config::Reader& item, const SequenceKeys& keys) {
  for (const char* key : {"select", "let", "window", "when"}) {
    if (!item.has(key)) continue;
    item.error(key, std::string("a sequence looks at other rules: it has no ") + key);
    return nullptr;
  }
  if (keys.sequence.empty() || (keys.sequence.size() == 1 && keys.without.empty())) {
    item.error("sequence", "expected at least two rules, or one and `without`");
    return nullptr;
  }
  if (keys.sequence.size() + keys.without.size() > kMostLinks) {
    item.error("sequence", "expected at most " + std::to_string(kMostLinks) + " rules");
    return nullptr;
  }
  if (keys.within.empty()) {
    item.error("sequence", "say `within` how many steps it takes, for instance within: 50 steps");
    return nullptr;
  }
  const Parsed<Size> within = parse_size(keys.within);
  if (!within) {
    item.error_at("within", within.problem->at, within.problem->message);
    return nullptr;
  }
  if (!check_by(item, keys.by)) return nullptr;
  SequenceTexts texts;
  texts.rules = keys.sequence;
  texts.without = keys.without;
  texts.by = keys.by;
  std::erase(texts.by, "run_uid");  // every unit is one of its run
  texts.within = within.value;
  texts.within_text = keys.within;
  texts.evidence = evidence_of(item, keys);
  return sequence_program(std::move(texts));
}

void check_followed(config::Reader& root, const std::vector<RuleSettings>& rules,
                    const std::map<std::string, std::string>& paths) {
  for (const RuleSettings& rule : rules) {
    const auto path = paths.find(rule.name);
    if (path == paths.end()) continue;
    for (const Followed& followed : rule.program->follows) {
      const std::string problem = problem_of(followed, rules);
      if (!problem.empty()) {
        root.error_at(path->second + "." + followed.key, followed.at, problem);
      }
    }
    if (const std::string circle = circle_of(rule, rules); !circle.empty()) {
      root.error(path->second + ".name",
                 "rules that follow each other in a circle: " + rule.name + " follows " + circle);
    }
  }
}

}  // namespace tocsin::rules::declared
