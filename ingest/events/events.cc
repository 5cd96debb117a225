#include "ingest/events/events.h"

#include <array>
#include <cstdio>
#include <utility>

#include "core/fields/command.h"
#include "core/fields/job.h"
#include "core/fields/json_in.h"
#include "core/fields/notification.h"
#include "core/fields/out.h"
#include "core/fields/outbox.h"
#include "core/frame.h"
#include "core/limits.h"
#include "core/replay.h"
#include "core/topics.h"
#include "ingest/events/annotations.h"
#include "ingest/events/envelope.h"
#include "ingest/events/issue_fit.h"

namespace tocsin::ingest {
namespace {

using core::OutRecord;
using core::RecordView;
using core::Result;

// Of what we write ourselves: the launch of a thousand nodes is long, and none of it may be left out.
constexpr std::size_t kMaxOwnBytes = core::kMaxFrameBytes;

std::string source_of(std::string_view cluster, std::string_view rest) {
  std::string out;
  if (!cluster.empty()) out.append("/").append(cluster);
  return out.append("/").append(rest);
}

std::string uid_text(const core::RunUid& uid) { return uid.nil() ? "" : core::to_text(uid); }

struct SeverityCode {
  const char* text;
  const char* number;
};
SeverityCode severity_code(core::Severity severity) {
  switch (severity) {
    case core::Severity::info:
      return {"INFO", "9"};
    case core::Severity::warning:
      return {"WARN", "13"};
    case core::Severity::error:
      return {"ERROR", "17"};
    case core::Severity::critical:
      return {"FATAL", "21"};
  }
  return {"ERROR", "17"};
}

/// Twenty digits, so that comparing texts compares numbers (CloudEvents extension "sequence").
std::string sequence_text(std::uint64_t sequence) {
  std::array<char, 21> text{};
  std::snprintf(text.data(), text.size(), "%020llu", static_cast<unsigned long long>(sequence));
  return text.data();
}

template <typename Data>
OutRecord record(std::string topic, std::string key, const Attributes& attributes,
                 const Data& data) {
  OutRecord out;
  out.topic = std::move(topic);
  out.key = std::move(key);
  out.value = core::write_json(data);
  out.headers = binary_headers(attributes);
  return out;
}

OutRecord job_record(std::string topic, const core::JobEvent& event, std::string_view cluster) {
  const std::string run = uid_text(event.run.uid);
  const std::string attempt = std::to_string(event.run.attempt);
  const std::string number = std::to_string(event.number);
  Attributes attributes;
  attributes.type = event_type::kJob;
  attributes.source = source_of(cluster, "engine");
  attributes.id = core::make_id("job_", {run, attempt, core::to_string(event.phase), number});
  attributes.time = event.time;
  attributes.subject = run;
  attributes.schema = "job.v1";
  attributes.extensions = {{"partitionkey", run}};
  return record(std::move(topic), run, attributes, event);
}

std::string unsupported(std::string_view type, std::string_view wanted) {
  return "event type \"" + std::string(type) + "\" is not " + std::string(wanted);
}

core::Status check_labels(const core::Labels& labels, const EventLimits& limits) {
  const auto refuse = [](const std::string& why) { return core::invalid_argument(why); };
  if (labels.empty()) return refuse("labels: at least one is needed");
  if (labels.entries().size() > limits.labels) {
    return refuse("labels: " + std::to_string(labels.entries().size()) + ", at most " +
                  std::to_string(limits.labels));
  }
  for (const auto& [name, value] : labels.entries()) {
    if (name.empty() || name.find('\0') != name.npos) {
      return refuse("labels: a name is empty or holds a NUL");
    }
    if (name.size() > limits.label_name_bytes) {
      return refuse("labels: a name of " + std::to_string(name.size()) + " bytes, at most " +
                    std::to_string(limits.label_name_bytes));
    }
    if (value.size() > limits.label_value_bytes) {
      return refuse("labels." + name + ": " + std::to_string(value.size()) + " bytes, at most " +
                    std::to_string(limits.label_value_bytes));
    }
  }
  return core::ok();
}

/// The run named by the subject or the label when the data does not name one; nil if neither is a
/// UUID.
void find_run(const Envelope& envelope, const core::Labels& labels, core::RunRef& run) {
  if (!run.uid.nil()) return;
  for (const std::string* text : {&envelope.subject, &labels.get("run_uid")}) {
    if (const auto uid = core::parse_run_uid(*text)) {
      run.uid = *uid;
      return;
    }
  }
}

Result<DecodedEvent> issue_event(Opened opened, const EventLimits& limits) {
  std::string error;
  core::Issue issue;
  core::JsonIn in(opened.json, opened.data, error);
  if (in.ok()) fields(in, issue);
  if (!error.empty()) return core::invalid_argument(error);
  if (core::Status good = check_labels(issue.labels, limits); !good) return good.error();
  DecodedEvent out;
  out.has_starts_at = in.has("starts_at");
  out.has_sequence = opened.envelope.sequence.has_value();
  if (issue.ends_at && out.has_starts_at && *issue.ends_at < issue.starts_at) {
    return core::invalid_argument("ends_at is before starts_at");
  }
  issue.event_id = opened.envelope.id;
  issue.source = opened.envelope.source;
  issue.sequence = opened.envelope.sequence.value_or(0);
  issue.time = opened.envelope.time.value_or(core::WallTime{});
  issue.traceparent = opened.envelope.traceparent;
  issue.tracestate = opened.envelope.tracestate;
  find_run(opened.envelope, issue.labels, issue.run);
  out.annotations_cut = cut_annotations(issue, limits.annotation_bytes);
  out.envelope = std::move(opened.envelope);
  out.event = std::move(issue);
  return out;
}

template <typename Event>
Result<DecodedEvent> other_event(Opened opened) {
  std::string error;
  Event event;
  core::JsonIn in(opened.json, opened.data, error);
  if (in.ok()) fields(in, event);
  if (!error.empty()) return core::invalid_argument(error);
  find_run(opened.envelope, {}, event.run);
  event.time = opened.envelope.time.value_or(core::WallTime{});
  DecodedEvent out;
  out.has_starts_at = false;
  out.has_sequence = opened.envelope.sequence.has_value();
  out.envelope = std::move(opened.envelope);
  out.event = std::move(event);
  return out;
}

Result<DecodedEvent> decode_opened(Result<Opened> opened, const EventLimits& limits) {
  if (!opened) return opened.error();
  const std::string type = opened->envelope.type;
  if (type == event_type::kIssue) return issue_event(std::move(*opened), limits);
  if (type == event_type::kJob) return other_event<core::JobEvent>(std::move(*opened));
  if (type == event_type::kRule) return other_event<core::RuleStatusEvent>(std::move(*opened));
  return core::invalid_argument(unsupported(type, "an issue, job or rule of version 1"));
}

/// One event of a fixed type.
template <typename Message>
Result<Message> decode_message(const RecordView& view, std::string_view type,
                               std::size_t max_bytes) {
  Result<Opened> opened = open_event(view, max_bytes);
  if (!opened) return opened.error();
  if (opened->envelope.type != type) {
    return core::invalid_argument(unsupported(opened->envelope.type, type));
  }
  std::string error;
  Message out;
  core::JsonIn in(opened->json, opened->data, error);
  if (in.ok()) fields(in, out);
  if (!error.empty()) return core::invalid_argument(error);
  return out;
}

}  // namespace

// One table for all rooms: what this header says, others have from there.
static_assert(EventLimits{}.labels == core::limit::kLabels &&
              EventLimits{}.label_name_bytes == core::limit::kLabelNameBytes &&
              EventLimits{}.label_value_bytes == core::limit::kLabelValueBytes &&
              EventLimits{}.annotation_bytes == core::limit::kAnnotationBytes &&
              EventLimits{}.event_bytes == core::limit::kEventBytes);

OutRecord encode_issue(const core::Issue& issue) {
  const std::string run = uid_text(issue.run.uid);
  const SeverityCode severity = severity_code(issue.severity);
  Attributes attributes;
  attributes.type = event_type::kIssue;
  attributes.source = issue.source.empty()
                          ? source_of(issue.labels.get("cluster"), "rules/" + issue.rule)
                          : issue.source;
  attributes.id = issue.event_id;
  attributes.time = issue.time;
  attributes.subject = run;
  attributes.schema = "issue.v1";
  attributes.extensions = {{"sequence", sequence_text(issue.sequence)},
                           {"partitionkey", run},
                           {"severitytext", severity.text},
                           {"severitynumber", severity.number},
                           {"traceparent", issue.traceparent},
                           {"tracestate", issue.tracestate}};
  OutRecord out = record(core::topic::kIssues, run, attributes, issue);
  if (!fits(issue, out.value->size())) out.value = core::write_json(fitting(issue));
  return out;
}

OutRecord encode_job(const core::JobEvent& event, std::string_view cluster) {
  return job_record(core::topic::kIssues, event, cluster);
}

OutRecord encode_registry(const core::JobEvent& event, std::string_view cluster) {
  return job_record(core::topic::kRegistry, event, cluster);
}

OutRecord encode_rule_status(const core::RuleStatusEvent& event, std::string_view cluster) {
  const std::string run = uid_text(event.run.uid);
  const std::string attempt = std::to_string(event.run.attempt);
  Attributes attributes;
  attributes.type = event_type::kRule;
  attributes.source = source_of(cluster, "rules/" + event.rule);
  // The status stays, and only what the rule sums up is new: another event; while the run goes on, one
  // for each period. What no rule has found anything in ends once.
  const std::string_view status = core::to_string(event.status);
  const bool new_sum = event.previous == event.status && !event.summary.empty();
  const std::string period = new_sum && event.status != core::RuleState::no_issues_found
                                 ? "summary/" + std::to_string(core::nanoseconds(event.time))
                                 : "summary";
  attributes.id = new_sum ? core::make_id("rul_", {event.rule, run, attempt, status, period})
                          : core::make_id("rul_", {event.rule, run, attempt, status});
  attributes.time = event.time;
  attributes.subject = run;
  attributes.schema = "rule.v1";
  attributes.extensions = {{"partitionkey", run}};
  return record(core::topic::kIssues, run, attributes, event);
}

OutRecord encode_command(const core::Command& command, std::string_view source,
                         std::string_view node) {
  const std::string run = node.empty() ? uid_text(command.run) : core::node_route_key(node);
  const core::CommandReason& reason = command.reason;
  Attributes attributes;
  attributes.type = event_type::kCommand;
  attributes.source = source;
  attributes.id = command.command_id;
  attributes.time = command.issued_at;
  attributes.subject = run;
  attributes.schema = "command.v1";
  attributes.extensions = {{"partitionkey", run}, {"causationid", reason.event_id}};
  if (!reason.issue_key.empty()) {
    attributes.extensions.emplace_back("correlationid",
                                       reason.issue_key + "/" + std::to_string(reason.episode));
  }
  if (command.expires_at) {
    attributes.extensions.emplace_back("expirytime", core::to_rfc3339(*command.expires_at));
  }
  OutRecord out = record(core::topic::kCommands, run + "/" + command.action, attributes, command);
  out.partition_key = run;
  return out;
}

OutRecord withdraw_command(const core::RunUid& run, std::string_view action) {
  OutRecord out;
  out.topic = core::topic::kCommands;
  out.key = uid_text(run) + "/" + std::string(action);
  out.partition_key = uid_text(run);
  return out;
}

OutRecord encode_ack(const core::Ack& ack, std::string_view cluster) {
  // An agent answers for its node, where nothing was asked of a run.
  const bool of_node = ack.run.nil() && !ack.node.empty();
  const std::string run = of_node ? core::node_route_key(ack.node) : uid_text(ack.run);
  Attributes attributes;
  attributes.type = event_type::kAck;
  attributes.source = source_of(cluster, of_node ? "agent/" + ack.node : "hook/" + ack.worker);
  attributes.id = core::make_id("ack_", {ack.command_id, std::to_string(ack.revision), ack.worker,
                                         std::to_string(ack.incarnation), ack.phase});
  attributes.time = ack.time;
  attributes.subject = run;
  attributes.schema = "ack.v1";
  attributes.extensions = {{"partitionkey", run}, {"causationid", ack.command_id}};
  return record(core::topic::kAcks, run, attributes, ack);
}

OutRecord encode_delivery(const core::Delivery& delivery, core::WallTime time,
                          std::string_view cluster) {
  const std::string attempt = std::to_string(delivery.attempt);
  Attributes attributes;
  attributes.type = event_type::kDelivery;
  attributes.source = source_of(cluster, "router");
  attributes.id =
      core::make_id("dlv_", {delivery.notification_id, attempt, core::to_string(delivery.state)});
  for (const auto& [name, value] : delivery.handles) {
    if (name == core::kReplayHandle) {  // its attempts are counted anew
      attributes.id = core::make_id(
          "dlv_", {delivery.notification_id, attempt, core::to_string(delivery.state), value});
    }
  }
  attributes.time = time;
  attributes.subject = delivery.notification_id;
  attributes.schema = "delivery.v1";
  return record(core::topic::kRouterDeliveries, delivery.notification_id, attributes, delivery);
}

OutRecord encode_notification(const core::Notification& notification) {
  OutRecord out;
  out.topic = core::topic::kRouterOutbox;
  out.key = notification.integration;
  out.value = core::write_outbox(notification);
  return out;
}

Result<DecodedEvent> decode_event(const RecordView& view, const EventLimits& limits) {
  // Jobs and statuses of rules are our own word, and grow with the nodes of a run.
  const std::string_view type = view.header("ce_type").value_or(std::string_view{});
  const bool own = type == event_type::kJob || type == event_type::kRule;
  return decode_opened(open_event(view, own ? kMaxOwnBytes : limits.event_bytes), limits);
}

Result<DecodedEvent> decode_structured_event(std::string_view json, const EventLimits& limits) {
  return decode_opened(open_structured(json, limits.event_bytes), limits);
}

Result<DecodedCommand> decode_command(const RecordView& view) {
  DecodedCommand out;
  out.key = std::string(view.key.value_or(std::string_view{}));
  const std::size_t slash = out.key.find('/');
  if (slash == out.key.npos || slash + 1 == out.key.size()) {
    return core::invalid_argument("key \"" + out.key.substr(0, 80) +
                                  "\" is not <run uid>/<slot> or node:<id>/agent");
  }
  const std::string owner = out.key.substr(0, slash);
  out.action = out.key.substr(slash + 1);
  if (const auto uid = core::parse_run_uid(owner)) {
    out.run = *uid;
  } else if (!owner.starts_with("node:")) {
    return core::invalid_argument("key does not begin with a run uid or node:<id>");
  }
  if (view.tombstone) return out;
  Result<core::Command> command =
      decode_message<core::Command>(view, event_type::kCommand, kMaxOwnBytes);
  if (!command) return command.error();
  // A command must not reach another run, or another slot, than its key says: compaction goes by
  // key.
  if (command->run != out.run || command->action != out.action) {
    return core::invalid_argument("the command's run or action differs from its key");
  }
  out.command = std::move(*command);
  return out;
}

Result<core::Ack> decode_ack(const RecordView& view) {
  return decode_message<core::Ack>(view, event_type::kAck, kMaxOwnBytes);
}

Result<core::Delivery> decode_delivery(const RecordView& view) {
  return decode_message<core::Delivery>(view, event_type::kDelivery, core::kMaxFrameBytes);
}

Result<core::Notification> open_notification(const RecordView& view) {
  if (view.tombstone) return core::invalid_argument("a tombstone is no notification");
  return core::read_outbox(view.text());
}

Result<core::Notification> decode_notification(const RecordView& view) {
  auto out = open_notification(view);
  if (!out) return out;
  if (const core::Status read = core::unpack(*out); !read) return read.error();
  return out;
}

std::string issue_json(const core::Issue& issue) { return core::write_json(issue); }

}  // namespace tocsin::ingest
