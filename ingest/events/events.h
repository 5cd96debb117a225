// CloudEvents 1.0 of the topics issues, registry, commands, acks, router-deliveries, and our own
// JSON of router-outbox (docs/events.md). Written in binary mode: attributes in `ce_…` headers,
// the value is the data; read in binary and in structured mode.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/command.h"
#include "core/issue.h"
#include "core/notification.h"
#include "core/record.h"
#include "core/result.h"

namespace tocsin::ingest {

namespace event_type {
inline constexpr std::string_view kIssue = "dev.tocsin.issue.v1";
inline constexpr std::string_view kJob = "dev.tocsin.job.v1";
inline constexpr std::string_view kRule = "dev.tocsin.rule.v1";
inline constexpr std::string_view kCommand = "dev.tocsin.command.v1";
inline constexpr std::string_view kAck = "dev.tocsin.ack.v1";
inline constexpr std::string_view kDelivery = "dev.tocsin.delivery.v1";
}  // namespace event_type

/// Limits of an issue event (docs/routing.md). Over a label limit or the event limit the
/// event is refused; over the annotation limit the longest annotation is cut at a code point.
struct EventLimits {
  std::size_t labels = 64;
  std::size_t label_name_bytes = 256;
  std::size_t label_value_bytes = 4096;
  std::size_t annotation_bytes = 32 * 1024;  // all annotations of one event together
  std::size_t event_bytes = 60 * 1024;
};

// ---- writing -------------------------------------------------------------------------------
// `cluster` names the source ("/<cluster>/rules/<rule>"); empty = no cluster ("/rules/<rule>"). All
// records are keyed as docs/events.md says. Text that is not UTF-8 is written with U+FFFD in its place.

/// Topic `issues`, key run uid, id = issue.event_id, source = issue.source.
core::OutRecord encode_issue(const core::Issue& issue);
/// Topic `issues`; id `job_…` over (run, attempt, phase, number).
core::OutRecord encode_job(const core::JobEvent& event, std::string_view cluster);
/// The same event on the compacted topic `registry`.
core::OutRecord encode_registry(const core::JobEvent& event, std::string_view cluster);
/// Topic `issues`; id `rul_…` over (rule, run, attempt, status).
core::OutRecord encode_rule_status(const core::RuleStatusEvent& event, std::string_view cluster);
/// Topic `commands`, key "<run uid>/<action>", partition of the run uid. `source` names the writer,
/// "/<cluster>/router"; causation is the event id of the command's reason.
/// For a node's agent (no run) `node` names it: key "node:<id>/agent".
core::OutRecord encode_command(const core::Command& command, std::string_view source,
                               std::string_view node = {});
/// The tombstone that withdraws a command.
core::OutRecord withdraw_command(const core::RunUid& run, std::string_view action);
/// Topic `acks`; id `ack_…` over (command id, revision, worker, incarnation, phase); source
/// "/<cluster>/hook/<worker>".
core::OutRecord encode_ack(const core::Ack& ack, std::string_view cluster);
/// Topic `router-deliveries`; id `dlv_…` over (notification, attempt, state).
core::OutRecord encode_delivery(const core::Delivery& delivery, core::WallTime time,
                                std::string_view cluster);
/// Topic `router-outbox`, key = integration; lossless text of our own, no CloudEvent.
core::OutRecord encode_notification(const core::Notification& notification);

// ---- reading -------------------------------------------------------------------------------
// Total. Errors are invalid_argument with a sentence for the producer: bad JSON, a wrong type, a
// missing attribute, a wrong schema major, a tombstone where none is allowed.

/// What an envelope says besides the data.
struct Envelope {
  std::string id;
  std::string source;
  std::string type;
  std::string subject;
  std::optional<core::WallTime> time;
  std::optional<std::uint64_t> sequence;
  std::string causation_id;
  std::string correlation_id;
  std::string traceparent;
  std::string tracestate;
};

using AnyEvent = std::variant<core::Issue, core::JobEvent, core::RuleStatusEvent>;

struct DecodedEvent {
  Envelope envelope;
  AnyEvent event;
  /// What the producer did not say; routing puts its defaults there (docs/routing.md).
  bool has_starts_at = true;
  bool has_sequence = true;
  bool annotations_cut = false;
};

/// One record of `issues` or `registry`. An issue needs `status` and `labels` and nothing else;
/// what is missing keeps its default, except: rule, kind and severity come from the labels, the run
/// from `run`, the subject or label run_uid, in this order; a severity outside the set stays a
/// label and counts as error; expiry defaults to timeout; an attempt that is not said is 0. Labels
/// and further annotations come through as they are.
core::Result<DecodedEvent> decode_event(const core::RecordView& record,
                                        const EventLimits& limits = {});
/// One event in structured mode (`application/cloudevents+json`).
core::Result<DecodedEvent> decode_structured_event(std::string_view json,
                                                   const EventLimits& limits = {});

/// A record of `commands`: a command, or (no value) the withdrawal of the slot.
struct DecodedCommand {
  std::string key;     // "<run uid>/<slot>" or "node:<id>/agent"
  core::RunUid run;    // nil for a node's key
  std::string action;  // the slot
  std::optional<core::Command> command;
};
core::Result<DecodedCommand> decode_command(const core::RecordView& record);
core::Result<core::Ack> decode_ack(const core::RecordView& record);
core::Result<core::Delivery> decode_delivery(const core::RecordView& record);
core::Result<core::Notification> decode_notification(const core::RecordView& record);
/// The same with its issues still packed: core::unpack() reads them.
core::Result<core::Notification> open_notification(const core::RecordView& record);

/// The data of one issue as JSON text, as it stands in the event (for the store and the web API).
std::string issue_json(const core::Issue& issue);

}  // namespace tocsin::ingest
