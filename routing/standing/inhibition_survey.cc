#include "routing/standing/inhibition_survey.h"

#include <deque>
#include <utility>

#include "routing/suppress/inhibition.h"
#include "routing/tables/firing_index.h"
#include "routing/tables/state.h"

namespace tocsin::routing {

using core::WallTime;

struct InhibitionSurvey::Parts {
  explicit Parts(const std::vector<InhibitRule>& rules) : inhibition(rules, firing) {}

  FiringIndex firing;
  Inhibition inhibition;
  std::deque<IssueState> sources;  // stay where they are
};

InhibitionSurvey::InhibitionSurvey(const std::vector<InhibitRule>& rules)
    : parts_(rules.empty() ? nullptr : std::make_unique<Parts>(rules)) {}
InhibitionSurvey::~InhibitionSurvey() = default;
InhibitionSurvey::InhibitionSurvey(InhibitionSurvey&&) noexcept = default;
InhibitionSurvey& InhibitionSurvey::operator=(InhibitionSurvey&&) noexcept = default;

void InhibitionSurvey::add(const std::string& key, const core::Issue& issue, bool firing,
                           WallTime since) {
  if (!parts_ || issue.shadow || !parts_->inhibition.is_source(issue.labels)) return;
  IssueState& source = parts_->sources.emplace_back();
  source.key = key;
  source.episode = 1;
  source.firing = firing;
  source.issue.labels = issue.labels;
  source.issue.starts_at = since;
  source.issue.ends_at = issue.ends_at;
  parts_->firing.follow(source, since);
}

std::vector<InhibitedBy> InhibitionSurvey::of(const core::Labels& labels, WallTime at) const {
  std::vector<InhibitedBy> out;
  if (!parts_) return out;
  for (const Inhibitor& one : parts_->inhibition.inhibitors(labels, at)) {
    out.push_back({std::string(one.reason.substr(kInhibition.size())), one.source->key.text()});
  }
  return out;
}

}  // namespace tocsin::routing
