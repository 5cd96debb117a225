#include "app/view/view_words.h"

#include <algorithm>

#include "core/labels.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kIdLength = 10;  // enough of a fingerprint to be the only one

bool begins(const std::string& text, const std::string& wanted) {
  return !wanted.empty() && text.rfind(wanted, 0) == 0;
}

}  // namespace

bool goes_by(const std::string& key, const core::Issue& issue, const std::string& id) {
  return begins(key, id) || begins(issue.event_id, id) ||
         begins(core::fingerprint(issue.labels), id);
}

std::string ago(core::WallTime then, core::WallTime now) {
  if (core::nanoseconds(then) == 0) return "";
  const auto since =
      std::max<std::int64_t>(0, (core::nanoseconds(now) - core::nanoseconds(then)) / 1'000'000'000);
  if (since < 120) return std::to_string(since) + " s ago";
  if (since < 7200) return std::to_string(since / 60) + " min ago";
  if (since < 172'800) return std::to_string(since / 3600) + " h ago";
  return std::to_string(since / 86'400) + " d ago";
}

std::string short_run(const core::RunUid& run) { return core::to_text(run).substr(0, 8); }

std::string short_id(std::string_view id) { return std::string(id.substr(0, kIdLength)); }

std::string job_of(const TopicView& view, const core::RunUid& run) {
  const auto found = view.runs().find(run);
  return found == view.runs().end() ? short_run(run) : core::visible(found->second.run.job);
}

std::vector<const routing::Silence*> in_force(const TopicView& view, core::WallTime now) {
  std::vector<const routing::Silence*> out;
  for (const auto& [id, silence] : view.silences()) {
    if (routing::in_force(silence, now)) out.push_back(&silence);
  }
  return out;
}

std::string issue_headline(const core::Issue& issue) {
  constexpr std::size_t kMostOfAJob = 60;  // bytes
  constexpr std::size_t kMostOfASummary = 200;
  const bool fires = issue.status == core::IssueStatus::firing;
  const std::string job = core::visible(issue.run.job, kMostOfAJob);
  return "[" + std::string(fires ? to_string(issue.severity) : "resolved") + "] " +
         (job.empty() ? "" : job + ": ") + core::visible(issue.summary, kMostOfASummary);
}

}  // namespace tocsin::app
