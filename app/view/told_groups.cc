#include "app/view/told_groups.h"

#include <algorithm>
#include <set>

#include "core/fields/outbox.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {

void ToldGroups::apply(const core::RecordView& record) {
  if (record.topic != core::topic::kRouterOutbox || record.tombstone) return;
  const auto message = ingest::open_notification(record);
  if (!message || message->group_hash.empty()) return;
  const auto [group, is_new] = groups_.try_emplace(message->group_hash);
  if (is_new) order_.push_back(message->group_hash);
  for (const core::IssueRef& one : core::listing_of(*message).issues) {
    auto& issues = group->second.issues;
    if (issues.size() >= kMostIssues && !issues.contains(one.issue_key)) continue;
    std::uint64_t& episode = issues[one.issue_key];
    episode = std::max(episode, one.episode);
  }
  group->second.generation = std::max(group->second.generation, message->generation);
  if (group_of_.try_emplace(message->notification_id, message->group_hash).second)
    messages_.push_back(message->notification_id);
  if (order_.size() > kMostGroups) {
    groups_.erase(order_.front());
    order_.pop_front();
  }
  if (messages_.size() > kMostMessages) {
    group_of_.erase(messages_.front());
    messages_.pop_front();
  }
}

void ToldGroups::clear() {
  groups_.clear();
  order_.clear();
  group_of_.clear();
  messages_.clear();
}

core::Result<std::string> ToldGroups::group_of(std::string_view what) const {
  std::set<std::string> found;
  for (auto i = groups_.lower_bound(what); i != groups_.end() && i->first.starts_with(what); ++i)
    found.insert(i->first);
  for (auto i = group_of_.lower_bound(what); i != group_of_.end() && i->first.starts_with(what);
       ++i)
    found.insert(i->second);
  if (found.size() > 1) {
    return core::Error{core::Code::failed_precondition,
                       std::to_string(found.size()) + " groups begin with " + std::string(what)};
  }
  return found.empty() ? std::string() : *found.begin();
}

const std::map<std::string, std::uint64_t>& ToldGroups::issues_of(const std::string& group) const {
  static const std::map<std::string, std::uint64_t> kNone;
  const auto found = groups_.find(group);
  return found == groups_.end() ? kNone : found->second.issues;
}

std::uint64_t ToldGroups::generation_of(const std::string& group) const {
  const auto found = groups_.find(group);
  return found == groups_.end() ? 0 : found->second.generation;
}

}  // namespace tocsin::app
