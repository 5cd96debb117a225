#include "app/cli/silence_preview.h"

#include <algorithm>

#include "actions/actions.h"
#include "app/health/own_issues.h"
#include "app/view/view_text.h"
#include "core/text.h"
#include "core/visible_text.h"
#include "rules/rules.h"

namespace tocsin::app {
namespace {

// What is known by name, of the topics and of the rules that are built in.
struct KnownNames {
  std::vector<std::string> labels;
  std::vector<std::string> rules;
  std::vector<std::string> jobs;

  explicit KnownNames(const TopicView& view)
      : labels(rules::issue_labels().begin(), rules::issue_labels().end()) {
    for (const auto own :
         {rules::own_issues(), routing::own_issues(), actions::own_issues(), app::own_issues()}) {
      for (const core::OwnIssue& issue : own) rules.emplace_back(issue.name);
    }
    for (const auto& rule : rules::builtin_rules()) rules.emplace_back(rule.name);
    for (const auto& [key, seen] : view.issues()) {
      rules.push_back(seen.newest.rule);
      for (const auto& [name, value] : seen.newest.labels.entries()) labels.push_back(name);
    }
    for (const auto& [uid, event] : view.runs()) {
      jobs.push_back(event.run.job);
      for (const auto& [name, value] : event.labels.entries()) labels.push_back(name);
      for (const std::string& rule : event.rules) rules.push_back(rule);
    }
  }
};

}  // namespace

SilencePreview preview(const TopicView& view, const routing::SilenceScope& scope,
                       core::WallTime now) {
  SilencePreview out;
  for (const auto& [key, seen] : view.issues()) {
    const core::Issue& issue = seen.newest;
    if (!scope.matches(issue.labels)) continue;
    if (issue.status == core::IssueStatus::firing) {
      out.firing.push_back(&seen);
    } else if (issue.ends_at.value_or(issue.time) + kPreviewed > now) {
      out.ended.push_back(&seen);
    }
  }
  return out;
}

std::string preview_text(const SilencePreview& preview, const TopicView& view, core::WallTime now,
                         bool ended_too) {
  std::string out = "matching open issues: " + std::to_string(preview.firing.size()) +
                    "; ended in the last 24 h: " + std::to_string(preview.ended.size()) + "\n";
  std::vector<const TopicView::SeenIssue*> shown = preview.firing;
  if (ended_too) shown.insert(shown.end(), preview.ended.begin(), preview.ended.end());
  if (!shown.empty()) out += issues_text(shown, view, now);
  return out;
}

std::vector<std::string> unknown_names(const routing::SilenceScope& scope, const TopicView& view) {
  const KnownNames known(view);
  std::vector<std::string> out;
  const auto look_for = [&](const std::string& what, const std::string& name,
                            const std::vector<std::string>& names) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    const std::string near = core::nearest(name, names);
    out.push_back(what + " \"" + core::visible(name) + "\" so far" +
                  (near.empty() ? "" : "; did you mean \"" + core::visible(near) + "\"?"));
  };
  for (const routing::Matchers& set : scope.sets()) {
    for (const auto& term : set.terms()) {
      look_for("no issue has a label", term.name, known.labels);
      if (term.op != routing::MatchOperator::equal) continue;
      if (term.name == "rule") look_for("there is no rule", term.value, known.rules);
      if (term.name == "job") look_for("there is no job", term.value, known.jobs);
    }
  }
  return out;
}

}  // namespace tocsin::app
