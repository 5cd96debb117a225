#include "app/api/stream_feed.h"

#include "app/view/agent_order.h"
#include "core/json.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {

using namespace std::chrono_literals;

namespace {

constexpr core::Duration kHeldBackAge = 1s;

}  // namespace

void StreamFeed::start_over() {
  if (at_end_) {
    hub_.publish("reset", {},
                 core::ValueMap{{"reason", "the topics are read again from their beginning"}});
  }
  at_end_ = false;
  held_.reset();
}

void StreamFeed::stands(bool at_end, const std::string& why_not) {
  at_end_ = at_end_ || at_end;
  const std::string now = at_end ? "" : "behind " + why_not;
  const core::Duration steady = clock_.monotonic();
  // Behind, it says once a second how far.
  if (now == told_ && (now.empty() || steady - told_at_ < 1s)) return;
  if (steady - told_at_ < 1s && told_at_ != core::Duration{}) return;
  told_ = now;
  told_at_ = steady;
  core::ValueMap data{{"catching_up", !at_end}};
  data.emplace_back("newest", newest_ == core::WallTime{} ? core::Value()
                                                          : core::Value(core::to_rfc3339(newest_)));
  if (!why_not.empty()) data.emplace_back("why", why_not);
  hub_.publish("lag", {}, data);
}

void StreamFeed::saw(const core::RecordView& record, const TopicView& view) {
  newest_ = core::wall_time(record.timestamp);
  if (record.topic == core::topic::kRouterControl) held_.reset();
  if (!at_end_ || !hub_.has_begun()) return;
  if (record.topic == core::topic::kIssues) {
    tell_issue(record, view);
  } else if (record.topic == core::topic::kRouterDeliveries) {
    tell_delivery(record, view);
  } else if (record.topic == core::topic::kCommands) {
    tell_command(record);
  } else if (record.topic == core::topic::kAcks) {
    tell_ack(record);
  } else if (record.topic == core::topic::kRouterControl) {
    tell_silence(record, view);
  }
}

void StreamFeed::tell_issue(const core::RecordView& record, const TopicView& view) {
  if (record.tombstone) return;
  const auto decoded = ingest::decode_event(record);
  if (!decoded) return;
  const auto* issue = std::get_if<core::Issue>(&decoded->event);
  if (issue == nullptr) return;
  const auto found = view.issues().find(core::issue_key(issue->labels));
  if (found == view.issues().end()) return;
  const core::WallTime now = clock_.now();
  // Who inhibits whom is looked up in all issues: once a second is enough for a stream.
  if (!held_ || now - held_->at() > kHeldBackAge || now < held_->at())
    held_.emplace(view, sight_, now);
  const core::Issue& newest = found->second.newest;
  hub_.publish(
      "issue", {newest.run.uid},
      issue_value({found->first, found->second, state_of(view, newest, sight_.resolve_timeout, now),
                   deliveries_.episode_of(found->first, newest.event_id),
                   held_->of(view, found->first, found->second)}));
}

void StreamFeed::tell_delivery(const core::RecordView& record, const TopicView& view) {
  if (record.tombstone || deliveries_.entries().empty()) return;
  const auto& newest = deliveries_.entries().back();
  if (newest.key.id != record_id(record)) return;  // it could not be read
  std::vector<core::RunUid> runs;
  for (const core::IssueRef& issue : newest.delivery.issues) {
    const auto found = view.issues().find(issue.issue_key);
    if (found != view.issues().end()) runs.push_back(found->second.newest.run.uid);
  }
  hub_.publish("delivery", runs, delivery_value(newest.delivery, newest.key.at, newest.key.id));
}

void StreamFeed::tell_command(const core::RecordView& record) {
  const auto decoded = ingest::decode_command(record);
  if (!decoded) return;
  if (!decoded->command) {
    const std::string node = node_of_key(decoded->key);
    core::Value run;
    if (node.empty()) run = core::ValueMap{{"uid", core::to_text(decoded->run)}};
    hub_.publish("command", {decoded->run},
                 core::ValueMap{{"run", std::move(run)},
                                {"node", node.empty() ? core::Value() : core::Value(node)},
                                {"action", decoded->action},
                                {"withdrawn", true}});
    return;
  }
  const auto found = commands_.entries().find(decoded->command->command_id);
  if (found != commands_.entries().end())
    hub_.publish("command", {decoded->run}, command_value(found->second));
}

void StreamFeed::tell_ack(const core::RecordView& record) {
  if (record.tombstone) return;
  if (const auto ack = ingest::decode_ack(record)) hub_.publish("ack", {ack->run}, ack_value(*ack));
}

void StreamFeed::tell_silence(const core::RecordView& record, const TopicView& view) {
  constexpr std::string_view kKind = "silence/";
  const std::string_view key = record.key.value_or("");
  if (!key.starts_with(kKind)) return;
  const std::string id(key.substr(kKind.size()));
  const auto found = view.silences().find(id);
  hub_.publish("silence", {},
               found == view.silences().end()
                   ? core::Value(core::ValueMap{{"id", id}, {"state", "gone"}})
                   : silence_row(found->second, clock_.now()));
}

}  // namespace tocsin::app
