#include "app/view/told_issues.h"

#include <map>
#include <utility>

#include "core/fields/outbox.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

bool goes_by_event(const core::Issue& issue, const std::string& id) {
  return issue.event_id.starts_with(id) || (issue.ending && issue.ending->event_id.starts_with(id));
}

}  // namespace

core::Result<std::vector<TopicView::SeenIssue>> told_issues(ingest::Transport& transport,
                                                            const std::string& event_id,
                                                            std::chrono::milliseconds patience,
                                                            const Moment& moment) {
  ingest::SourceOptions options;
  options.topics = {core::topic::kRouterOutbox};
  options.start = ingest::Start::beginning;
  auto source = transport.source(options);
  if (!source) return source.error();
  std::map<std::pair<std::string, std::uint64_t>, TopicView::SeenIssue> found;
  const auto apply = [&](const core::RecordView& record) {
    if (record.tombstone || !moment.holds(record)) return;
    auto message = ingest::open_notification(record);
    if (!message || !core::unpack(*message)) return;
    for (core::NotifiedIssue& one : message->issues) {
      const std::pair key{one.issue_key, one.episode};
      if (!found.contains(key) && !goes_by_event(one.issue, event_id)) continue;
      const core::WallTime since = one.issue.starts_at;
      found[key] = {std::move(one.issue), since, 1};
    }
  };
  if (auto read = read_to_end(**source, apply, patience); !read) return read.error();
  std::vector<TopicView::SeenIssue> out;
  for (auto& [key, seen] : found) out.push_back(std::move(seen));
  return out;
}

}  // namespace tocsin::app
