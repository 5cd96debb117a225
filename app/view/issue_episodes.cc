#include "app/view/issue_episodes.h"

#include <algorithm>
#include <variant>

#include "app/view/view_words.h"
#include "core/identity.h"
#include "core/topics.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {

void IssueEpisodes::apply(const core::RecordView& record) {
  if (record.topic != core::topic::kIssues || record.tombstone) return;
  const auto decoded = ingest::decode_event(record);
  const auto* issue = decoded ? std::get_if<core::Issue>(&decoded->event) : nullptr;
  if (issue == nullptr) return;
  const std::string key = core::issue_key(issue->labels);
  std::vector<Episode>& all = episodes_[key];
  const bool fires = issue->status == core::IssueStatus::firing;
  if (all.empty() || (fires && all.back().over)) {
    Episode begun;
    begun.names = {key, issue->event_id,
                   issue->run.uid.nil() ? std::string() : core::to_text(issue->run.uid)};
    begun.fingerprint = core::fingerprint(issue->labels);
    begun.headline = issue_headline(*issue);
    all.push_back(std::move(begun));
  }
  Episode& now = all.back();
  now.over = !fires;
  if (fires) now.headline = issue_headline(*issue);
  now.reports.insert(issue->event_id);
}

core::Result<IssueEpisodes::Episode> IssueEpisodes::choose(const std::string& id) const {
  std::vector<const Episode*> found;
  const auto begins = [&](const std::string& text) { return !id.empty() && text.starts_with(id); };
  for (const auto& entry : episodes_) {
    const std::vector<Episode>& all = entry.second;
    const bool by_issue = begins(entry.first) || begins(all.back().fingerprint);
    for (const Episode& one : all) {
      const bool newest = &one == &all.back();
      if ((newest && by_issue) || std::any_of(one.reports.begin(), one.reports.end(), begins))
        found.push_back(&one);
    }
  }
  if (found.size() == 1) return *found.front();
  return core::Error{
      found.empty() ? core::Code::not_found : core::Code::failed_precondition,
      (found.empty() ? "no issue has ID "
                     : std::to_string(found.size()) + " issues have IDs that begin with ") +
          core::visible(id, 100) + "; see: tocsin issues list --all"};
}

}  // namespace tocsin::app
