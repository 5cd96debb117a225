#include "routing/suppress/inhibition.h"

#include <algorithm>

namespace tocsin::routing {

using core::WallTime;

core::Status Inhibition::check(const std::vector<InhibitRule>& rules) {
  for (const InhibitRule& rule : rules) {
    for (const auto* side : {&rule.source_matchers, &rule.target_matchers}) {
      if (const auto parsed = Matchers::parse(*side); !parsed) {
        return core::Error(parsed.error()).in("inhibit rule " + rule.name);
      }
    }
  }
  return core::ok();
}

Inhibition::Inhibition(const std::vector<InhibitRule>& rules, FiringIndex& firing)
    : firing_(firing) {
  std::vector<Matchers> targets;
  for (const InhibitRule& rule : rules) {
    const Matchers sources = *Matchers::parse(rule.source_matchers);
    targets.push_back(*Matchers::parse(rule.target_matchers));
    FiringQuestion question;
    question.matchers = sources;
    question.equal = rule.equal;
    question.apart = targets.back();
    question.min_age = rule.source_min_age;
    question.held = rule.hold_after;
    rules_.push_back(
        {std::string(kInhibition) + rule.name, sources, firing.ask(std::move(question))});
  }
  targets_ = MatcherIndex(std::move(targets));
}

void Inhibition::reasons(const core::Issue& issue, WallTime tick,
                         std::vector<Suppression>& out) const {
  for (const Inhibitor& one : inhibitors(issue.labels, tick)) {
    out.push_back({std::string(one.reason), Reach::all, Cause::inhibition});
  }
}

/// Who is source and target is inhibited only by sources that are no targets: so no two that are both
/// silence each other, and none itself.
std::vector<Inhibitor> Inhibition::inhibitors(const core::Labels& labels, WallTime tick) const {
  std::vector<Inhibitor> out;
  if (rules_.empty()) return out;
  targets_.match(labels, matching_);
  for (const std::size_t i : matching_) {
    const Rule& rule = rules_[i];
    const bool both = rule.sources.matches(labels);
    const IssueState* source = firing_.deciding(rule.question, labels, both, tick);
    if (source != nullptr) out.push_back({rule.reason, source});
  }
  return out;
}

bool Inhibition::is_source(const core::Labels& labels) const {
  return std::any_of(rules_.begin(), rules_.end(),
                     [&](const Rule& rule) { return rule.sources.matches(labels); });
}

bool Inhibition::has_target(const core::Issue& issue) const {
  if (rules_.empty()) return false;
  targets_.match(issue.labels, matching_);
  return !matching_.empty();
}

bool Inhibition::may_differ(const AnyMember& any_member, WallTime since, WallTime now) const {
  const bool some = std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    return firing_.may_differ(rule.question, since, now);
  });
  if (!some) return false;
  return any_member([&](const core::Issue& issue) {
    targets_.match(issue.labels, matching_);
    return std::any_of(matching_.begin(), matching_.end(), [&](std::size_t i) {
      return firing_.may_differ(rules_[i].question, issue.labels, since, now);
    });
  });
}

}  // namespace tocsin::routing
