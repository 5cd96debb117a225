#include "app/view/told_groups.h"

#include "core/fields/outbox.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {

void ToldGroups::apply(const core::RecordView& record) {
  if (record.topic != core::topic::kRouterOutbox || record.tombstone) return;
  const auto message = ingest::open_notification(record);
  if (!message || message->group_hash.empty()) return;
  const auto [group, is_new] = issues_.try_emplace(message->group_hash);
  if (is_new) order_.push_back(message->group_hash);
  for (const core::IssueRef& one : core::listing_of(*message).issues) {
    if (group->second.size() < kMostIssues) group->second.insert(one.issue_key);
  }
  if (group_of_.try_emplace(message->notification_id, message->group_hash).second)
    messages_.push_back(message->notification_id);
  if (order_.size() > kMostGroups) {
    issues_.erase(order_.front());
    order_.pop_front();
  }
  if (messages_.size() > kMostMessages) {
    group_of_.erase(messages_.front());
    messages_.pop_front();
  }
}

void ToldGroups::clear() {
  issues_.clear();
  order_.clear();
  group_of_.clear();
  messages_.clear();
}

core::Result<std::string> ToldGroups::group_of(std::string_view what) const {
  std::set<std::string> found;
  for (auto i = issues_.lower_bound(what); i != issues_.end() && i->first.starts_with(what); ++i)
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

const std::set<std::string>& ToldGroups::issues_of(const std::string& group) const {
  static const std::set<std::string> kNone;
  const auto found = issues_.find(group);
  return found == issues_.end() ? kNone : found->second;
}

}  // namespace tocsin::app
