#include "app/view/ack_choice.h"

#include "app/view/view_words.h"
#include "app/view/which_run.h"
#include "core/identity.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kLeastHash = 8;  // digits of a hash that are looked for

bool fires(const TopicView::SeenIssue& seen) {
  return seen.newest.status == core::IssueStatus::firing;
}

bool is_hash(const std::string& text) {
  return text.size() >= kLeastHash &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

core::Result<AckChoice> choose_run(const TopicView& view, const std::string& what,
                                   const std::string& job) {
  const auto run = which_run(known_runs(view), what, job);
  if (!run) return run.error();
  AckChoice out;
  out.names.run = core::to_text(run->run.uid);
  for (const auto& [key, seen] : view.issues()) {
    if (fires(seen) && seen.newest.run.uid == run->run.uid) out.open.emplace_back(key, &seen);
  }
  return out;
}

AckChoice choose_issue(const TopicView& view, const std::string& what) {
  AckChoice out;
  for (const auto& [key, seen] : view.issues()) {
    if (fires(seen) && goes_by(key, seen.newest, what)) out.open.emplace_back(key, &seen);
  }
  if (out.open.size() == 1) out.names.issues = {out.open.front().first};
  return out;
}

}  // namespace

AckChoice choose_group(const TopicView& view, const ToldGroups& told, const std::string& group) {
  AckChoice out;
  out.names.group = group;
  const auto& keys = told.issues_of(group);
  for (const auto& [key, seen] : view.issues()) {
    if (!fires(seen) || !keys.contains(key)) continue;
    out.open.emplace_back(key, &seen);
    if (out.names.issues.size() < routing::kMaxAckIssues) out.names.issues.push_back(key);
  }
  return out;
}

core::Result<AckChoice> choose_acknowledged(const TopicView& view, const std::string& what,
                                            const std::string& job, AskToldGroups told) {
  if (!job.empty()) return choose_run(view, what, job);
  AckChoice out = choose_issue(view, what);
  if (out.open.size() > 1) {
    return core::Error{core::Code::failed_precondition,
                       std::to_string(out.open.size()) + " open issues have IDs that begin with " +
                           what + "; see: tocsin issues list"};
  }
  if (out.open.size() == 1) return out;
  if (what.starts_with("ntf_") || is_hash(what)) {
    const auto groups = told();
    if (!groups) return groups.error();
    const auto group = (*groups)->group_of(what);
    if (!group) return group.error();
    if (!group->empty()) return choose_group(view, **groups, *group);
  }
  if (what.starts_with("iss_") || what.starts_with("ntf_")) {
    return core::Error{core::Code::not_found,
                       "nothing open has ID " + what + "; see: tocsin issues list"};
  }
  return choose_run(view, what, job);
}

}  // namespace tocsin::app
