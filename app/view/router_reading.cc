#include "app/view/router_reading.h"

#include <utility>

#include "app/view/topic_view.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

Value time_or_null(const std::optional<core::WallTime>& time) {
  return time ? Value(core::to_rfc3339(*time)) : Value();
}

Value integration_value(const routing::IntegrationStanding& one) {
  ValueList told;
  for (const auto& issue : one.told) {
    told.push_back(ValueMap{{"key", issue.issue_key},
                            {"episode", issue.episode},
                            {"severity", std::string(core::to_string(issue.severity))},
                            {"arrived", issue.arrived}});
  }
  ValueList owed;
  for (const auto& end : one.owed) {
    owed.push_back(ValueMap{
        {"key", end.issue_key}, {"episode", end.episode}, {"since", core::to_rfc3339(end.since)}});
  }
  ValueList waiting;
  for (const auto& message : one.waiting) {
    waiting.push_back(ValueMap{{"notification_id", message.notification_id},
                               {"kind", std::string(core::to_string(message.kind))},
                               {"decided_at", core::to_rfc3339(message.decided_at)}});
  }
  return ValueMap{
      {"integration", one.integration}, {"incident_open", one.incident_open},
      {"messages", one.messages},       {"last_message_at", time_or_null(one.last_message_at)},
      {"told", std::move(told)},        {"owed", std::move(owed)},
      {"waiting", std::move(waiting)}};
}

}  // namespace

core::Result<routing::RouterStanding> read_standing(ingest::Transport& transport,
                                                    std::chrono::milliseconds patience) {
  ingest::SourceOptions options;
  options.topics = {core::topic::kRouterState};
  options.start = ingest::Start::beginning;
  auto source = transport.source(options);
  if (!source) return source.error();
  routing::RouterStanding out;
  const auto apply = [&](const core::RecordView& record) {
    if (!record.key) return;
    out.apply(*record.key, record.tombstone ? std::nullopt : std::optional(record.text()));
  };
  if (auto read = read_to_end(**source, apply, patience); !read) return read.error();
  return out;
}

Value group_value(const routing::GroupStanding& group) {
  ValueMap labels;
  for (const auto& [name, value] : group.labels.entries()) labels.emplace_back(name, value);
  ValueList integrations;
  for (const auto& one : group.integrations) integrations.push_back(integration_value(one));
  return ValueMap{{"hash", group.hash},
                  {"key", group.key},
                  {"route", group.route_id},
                  {"labels", std::move(labels)},
                  {"overflow", group.overflow},
                  {"generation", group.generation},
                  {"created_at", core::to_rfc3339(group.created_at)},
                  {"last_flush", time_or_null(group.last_flush)},
                  {"next_flush", time_or_null(group.next_flush)},
                  {"held", group.held},
                  {"issues", ValueList(group.members.begin(), group.members.end())},
                  {"integrations", std::move(integrations)}};
}

}  // namespace tocsin::app
