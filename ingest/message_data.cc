// Commands, acks, deliveries and outbox notifications as JSON (wire-and-api §9.4 to §9.6).
#include <cmath>
#include <utility>

#include "ingest/event_data.h"

namespace tocsin::ingest {
namespace {

constexpr core::OutcomeClass kOutcomes[] = {
    core::OutcomeClass::delivered, core::OutcomeClass::transient,
    core::OutcomeClass::throttled, core::OutcomeClass::configuration,
    core::OutcomeClass::gone,      core::OutcomeClass::bad_payload,
    core::OutcomeClass::unknown};

constexpr double kNanosecondsPerMillisecond = 1e6;

Json run_of(const core::RunUid& uid, std::uint32_t attempt) {
  Json out = Json::object();
  out["uid"] = uid.nil() ? Json(nullptr) : Json(core::to_text(uid));
  out["attempt"] = attempt == 0 ? Json(nullptr) : Json(attempt);
  return out;
}

/// An attempt that is not said reads as 0, which is nobody's.
void read_run_of(const Fields& in, core::RunUid& uid, std::uint32_t& attempt) {
  attempt = 0;
  in.object("run", [&](const Fields& run) {
    run.uid("uid", uid);
    run.integer("attempt", attempt);
  });
}

void require_text(const Fields& in, std::string_view name, std::string& out) {
  in.text(name, out);
  if (out.empty()) in.missing(name);
}

Json notified_list(const std::vector<core::NotifiedIssue>& issues) {
  Json out = Json::array();
  for (const core::NotifiedIssue& issue : issues) out.push_back(notified_json(issue));
  return out;
}

}  // namespace

Json notified_json(const core::NotifiedIssue& issue) {
  Json out = Json::object();
  out["issue_key"] = issue.issue_key;
  out["episode"] = issue.episode;
  out["event_id"] = issue.issue.event_id;
  out["source"] = issue.issue.source;
  out["sequence"] = issue.issue.sequence;
  out["time"] = time_or_null(issue.issue.time);
  if (!issue.issue.traceparent.empty()) out["traceparent"] = issue.issue.traceparent;
  if (!issue.issue.tracestate.empty()) out["tracestate"] = issue.issue.tracestate;
  out["data"] = issue_data(issue.issue);
  return out;
}

void read_notified(const Fields& in, core::NotifiedIssue& out) {
  in.text("issue_key", out.issue_key);
  in.integer("episode", out.episode);
  in.text("event_id", out.issue.event_id);
  in.text("source", out.issue.source);
  in.integer("sequence", out.issue.sequence);
  in.time("time", out.issue.time);
  in.text("traceparent", out.issue.traceparent);
  in.text("tracestate", out.issue.tracestate);
  if (!in.has("data")) in.missing("data");
  in.object("data", [&](const Fields& data) { read_issue(data, out.issue); });
}

Json command_data(const core::Command& command) {
  Json out = Json::object();
  out["command_id"] = command.command_id;
  out["action"] = command.action;
  out["run"] = run_of(command.run, command.attempt);
  if (!command.launch.empty()) out["run"]["launch"] = launch_json(command.launch);
  out["ranks"] = command.ranks.empty() ? Json("all") : Json(command.ranks);
  out["revision"] = command.revision;
  out["issued_at"] = time_or_null(command.issued_at);
  out["expires_at"] = command.expires_at ? time_json(*command.expires_at) : Json(nullptr);
  out["requested_by"] = command.requested_by;
  Json reason = Json::object();
  reason["rule"] = command.reason.rule;
  reason["issue_key"] = command.reason.issue_key;
  reason["episode"] = command.reason.episode;
  reason["event_id"] = command.reason.event_id;
  reason["summary"] = command.reason.summary;
  out["reason"] = std::move(reason);
  out["dry_run"] = command.dry_run;
  out["args"] = command.args.is_null() ? Json::object() : value_json(command.args);
  return out;
}

void read_command(const Fields& in, core::Command& out) {
  require_text(in, "command_id", out.command_id);
  require_text(in, "action", out.action);
  read_run_of(in, out.run, out.attempt);
  in.object("run", [&](const Fields& run) { read_launch(run, out.launch); });
  if (const Json* ranks = in.find("ranks"); ranks != nullptr && *ranks != "all") {
    in.each("ranks", [&](const Json& item) {
      const bool rank = item.is_number_unsigned() && item.get<std::uint64_t>() <= 0xFFFFFFFFU;
      if (!rank) return in.wrong("ranks", R"("all" or a list of ranks)");
      out.ranks.push_back(item.get<std::uint32_t>());
    });
  }
  in.integer("revision", out.revision);
  in.time("issued_at", out.issued_at);
  in.time("expires_at", out.expires_at);
  in.text("requested_by", out.requested_by);
  in.object("reason", [&](const Fields& reason) {
    reason.text("rule", out.reason.rule);
    reason.text("issue_key", out.reason.issue_key);
    reason.integer("episode", out.reason.episode);
    reason.text("event_id", out.reason.event_id);
    reason.text("summary", out.reason.summary);
  });
  in.boolean("dry_run", out.dry_run);
  in.value("args", out.args);
}

Json ack_data(const core::Ack& ack) {
  Json out = Json::object();
  out["command_id"] = ack.command_id;
  out["revision"] = ack.revision;
  out["action"] = ack.action;
  out["phase"] = ack.phase;
  out["run"] = run_of(ack.run, ack.attempt);
  out["rank"] = ack.rank;
  out["worker"] = ack.worker;
  out["incarnation"] = ack.incarnation;
  if (!ack.node.empty()) out["node"] = ack.node;
  out["step"] = ack.step;
  out["time"] = time_or_null(ack.time);
  if (!ack.reason.empty()) out["reason"] = ack.reason;
  if (!ack.checkpoint_path.empty()) {
    out["checkpoint"] = {{"path", ack.checkpoint_path}, {"bytes", ack.checkpoint_bytes}};
  }
  if (!ack.version.empty()) out["version"] = ack.version;
  if (ack.effective_step) out["effective_step"] = *ack.effective_step;
  if (ack.exit_code) out["exit_code"] = *ack.exit_code;
  return out;
}

void read_ack(const Fields& in, core::Ack& out) {
  require_text(in, "command_id", out.command_id);
  require_text(in, "phase", out.phase);
  in.integer("revision", out.revision);
  in.text("action", out.action);
  read_run_of(in, out.run, out.attempt);
  in.integer("rank", out.rank);
  in.text("worker", out.worker);
  in.integer("incarnation", out.incarnation);
  in.text("node", out.node);
  in.integer("step", out.step);
  in.time("time", out.time);
  in.text("reason", out.reason);
  in.object("checkpoint", [&](const Fields& checkpoint) {
    checkpoint.text("path", out.checkpoint_path);
    checkpoint.integer("bytes", out.checkpoint_bytes);
  });
  in.text("version", out.version);
  in.integer("effective_step", out.effective_step);
  in.integer("exit_code", out.exit_code);
}

Json delivery_data(const core::Delivery& delivery) {
  Json out = Json::object();
  out["notification_id"] = delivery.notification_id;
  out["integration"] = delivery.integration;
  out["type"] = delivery.type;
  out["receiver"] = delivery.receiver;
  out["route_id"] = delivery.route_id;
  out["group_key"] = delivery.group_key;
  out["reason"] = delivery.reason;
  out["kind"] = core::to_string(delivery.kind);
  out["attempt"] = delivery.attempt;
  out["state"] = core::to_string(delivery.state);
  out["class"] = core::to_string(delivery.outcome);
  out["code"] = delivery.code;
  out["detail"] = delivery.detail;
  out["latency_ms"] = static_cast<double>(delivery.latency.count()) / kNanosecondsPerMillisecond;
  Json handles = Json::object();
  for (const auto& [name, value] : delivery.handles) handles[name] = value;
  out["handles"] = std::move(handles);
  out["next_attempt_at"] =
      delivery.next_attempt_at ? time_json(*delivery.next_attempt_at) : Json(nullptr);
  out["config_version"] = delivery.config_version;
  Json issues = Json::array();
  for (const auto& issue : delivery.issues) {
    issues.push_back(
        {{"issue_key", issue.issue_key}, {"episode", issue.episode}, {"event_id", issue.event_id}});
  }
  out["issues"] = std::move(issues);
  const auto& stages = delivery.stages;
  out["stages"] = {
      {"measured", time_or_null(stages.measured)},   {"published", time_or_null(stages.published)},
      {"evaluated", time_or_null(stages.evaluated)}, {"decided", time_or_null(stages.decided)},
      {"sent", time_or_null(stages.sent)},           {"answered", time_or_null(stages.answered)}};
  return out;
}

void read_delivery(const Fields& in, core::Delivery& out) {
  require_text(in, "notification_id", out.notification_id);
  in.text("integration", out.integration);
  in.text("type", out.type);
  in.text("receiver", out.receiver);
  in.text("route_id", out.route_id);
  in.text("group_key", out.group_key);
  in.text("reason", out.reason);
  in.word("kind", out.kind,
          [](const std::string& text) { return core::notification_kind_from(text); });
  in.integer("attempt", out.attempt);
  if (!in.has("state")) in.missing("state");
  in.word("state", out.state,
          [](const std::string& text) { return core::delivery_state_from(text); });
  in.word("class", out.outcome, [](const std::string& text) { return enum_from(kOutcomes, text); });
  in.text("code", out.code);
  in.text("detail", out.detail);
  double latency_ms = 0;
  in.number("latency_ms", latency_ms);
  const double latency = latency_ms * kNanosecondsPerMillisecond;
  if (std::fabs(latency) < 9.2e18) out.latency = core::Duration{std::llround(latency)};
  core::Value handles;
  in.value("handles", handles);
  if (const auto* map = std::get_if<core::ValueMap>(&handles.storage())) {
    for (const auto& [name, value] : *map) {
      const auto* text = std::get_if<std::string>(&value.storage());
      out.handles.emplace_back(name, text != nullptr ? *text : core::to_json(value));
    }
  }
  in.time("next_attempt_at", out.next_attempt_at);
  in.text("config_version", out.config_version);
  in.objects("issues", [&](const Fields& item) {
    auto& issue = out.issues.emplace_back();
    item.text("issue_key", issue.issue_key);
    item.integer("episode", issue.episode);
    item.text("event_id", issue.event_id);
  });
  in.object("stages", [&](const Fields& stages) {
    stages.time("measured", out.stages.measured);
    stages.time("published", out.stages.published);
    stages.time("evaluated", out.stages.evaluated);
    stages.time("decided", out.stages.decided);
    stages.time("sent", out.stages.sent);
    stages.time("answered", out.stages.answered);
  });
}

Json notification_data(const core::Notification& from) {
  Json out = Json::object();
  out["notification_id"] = from.notification_id;
  out["integration"] = from.integration;
  out["type"] = from.type;
  out["receiver"] = from.receiver;
  out["route_id"] = from.route_id;
  out["group_key"] = from.group_key;
  out["group_hash"] = from.group_hash;
  out["generation"] = from.generation;
  out["reason"] = from.reason;
  out["kind"] = core::to_string(from.kind);
  out["firing"] = from.firing;
  out["group_labels"] = labels_json(from.group_labels);
  out["common_labels"] = labels_json(from.common_labels);
  out["issues"] = notified_list(from.issues);
  out["suppressed"] = notified_list(from.suppressed);
  out["firing_count"] = from.firing_count;
  out["resolved_count"] = from.resolved_count;
  out["truncated"] = from.truncated;
  out["decided_at"] = time_or_null(from.decided_at);
  out["expires_at"] = time_or_null(from.expires_at);
  out["config_version"] = from.config_version;
  out["rendered"] = from.rendered;
  return out;
}

void read_notification(const Fields& in, core::Notification& out) {
  require_text(in, "notification_id", out.notification_id);
  require_text(in, "integration", out.integration);
  in.text("type", out.type);
  in.text("receiver", out.receiver);
  in.text("route_id", out.route_id);
  in.text("group_key", out.group_key);
  in.text("group_hash", out.group_hash);
  in.integer("generation", out.generation);
  in.text("reason", out.reason);
  in.word("kind", out.kind,
          [](const std::string& text) { return core::notification_kind_from(text); });
  in.boolean("firing", out.firing);
  in.labels("group_labels", out.group_labels);
  in.labels("common_labels", out.common_labels);
  in.objects("issues", [&](const Fields& item) { read_notified(item, out.issues.emplace_back()); });
  in.objects("suppressed",
             [&](const Fields& item) { read_notified(item, out.suppressed.emplace_back()); });
  in.integer("firing_count", out.firing_count);
  in.integer("resolved_count", out.resolved_count);
  in.integer("truncated", out.truncated);
  in.time("decided_at", out.decided_at);
  in.time("expires_at", out.expires_at);
  in.text("config_version", out.config_version);
  in.text("rendered", out.rendered);
}

}  // namespace tocsin::ingest
