// One fully filled example of each event, so that a forgotten field shows in a round trip.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "core/command.h"
#include "core/issue.h"
#include "core/notification.h"

namespace tocsin::ingest::fixture {

inline core::WallTime at(std::int64_t offset_ns = 0) {
  return core::wall_time(1767323045678000000 + offset_ns);
}

inline core::RunRef run_ref() {
  core::RunRef run;
  run.uid = core::run_uid_for("digits", "exploding");
  run.attempt = 2;
  run.job = "digits";
  run.platform = "k8s-job";
  run.ref = core::ValueMap{{"namespace", "ml"}, {"pid", 4711}};
  return run;
}

inline core::Evidence full_evidence() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  core::Evidence evidence;
  evidence.observed = {"l2", kInf};
  evidence.op = ">=";
  evidence.threshold = core::NamedNumber{"limit", 1e-7};
  evidence.tensor =
      core::TensorRef{"gradient/conv1.weight", "gradients", core::Dtype::bf16, {32, 3, 3, 3}};
  evidence.window = {"step", 400, 412, at(-9), at(), 13, true, {1, 3}};
  evidence.parameters = {{"only_nan", false, "default"}, {"limit", 10.0, "user"}};
  evidence.first_seen = at(-5'000'000'000);
  evidence.occurrences = 4;
  evidence.affected = {3, 120, {{"tensor=a", 17.0}, {"tensor=b", std::nan("")}}};
  evidence.data_refs = {{"tocsin.telemetry.v1", 3, 8812, 8813}};
  evidence.values = {{"z_first", 5}, {"a", core::ValueList{1.5, "text", core::Value{}, true}}};
  return evidence;
}

inline core::Issue full_issue() {
  core::Issue issue;
  issue.event_id = "iss_6c5duorosylmw5zjzjdy55lrk5";
  issue.source = "/c1/rules/exploding_tensor";
  issue.sequence = 42;
  issue.time = at(1);
  issue.status = core::IssueStatus::resolved;
  issue.rule = "exploding_tensor";
  issue.rule_type = "exploding";
  issue.rule_version = "3";
  issue.params_hash = "9e6014ae63e4a968";
  issue.kind = "nan";
  issue.shadow = true;
  issue.severity = core::Severity::critical;
  issue.labels = {{"rule", "exploding_tensor"},
                  {"severity", "critical"},
                  {"job", "digits"},
                  {"cluster", "c1"},
                  {"kind", "nan"},
                  {"team", "größe"}};
  issue.summary = "a \"quoted\" summary";
  issue.description = "two\nlines";
  issue.recommendation = "lower the learning rate";
  issue.runbook_url = "https://example.com/runbook";
  issue.annotations = {{"dashboard_url", "https://example.com/d"}, {"owner", "größe"}};
  issue.generator_url = "https://example.com/graph?g0.expr=up";
  issue.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  issue.tracestate = "vendor=value";
  issue.starts_at = at(-7);
  issue.ends_at = at(8);
  issue.explicit_expiry = true;
  issue.resolution = core::Resolution::job_ended;
  issue.run = run_ref();
  issue.step = 412;
  issue.global_step = 437;
  issue.mode = core::Mode::eval;
  issue.epoch = 3;
  issue.evidence = full_evidence();
  issue.measured_at = at(-100);
  issue.published_at = at(-50);
  issue.evaluated_at = at(-1);
  return issue;
}

/// NaN equals nothing: to compare issues that hold one, it becomes a number that nobody wrote.
inline core::Issue comparable(core::Issue issue) {
  for (auto& [unit, value] : issue.evidence.affected.worst) {
    if (std::isnan(value)) value = -98765.5;
  }
  return issue;
}

inline core::JobEvent full_job() {
  core::JobEvent event;
  event.phase = core::JobPhase::ended;
  event.number = 2;
  event.run = run_ref();
  event.labels = {{"team", "nlp"}};
  event.world_size = 8;
  event.rules = {"exploding_tensor", "loss_plateau"};
  event.time = at();
  event.started_at = at(-1000);
  event.ended_at = at();
  event.outcome = "stopped_by_rule";
  event.exit_code = 77;
  event.step = 412;
  event.step_seconds = 0.125;
  event.launch = {{"node-a", "0011aabb/7"}, {"node-b", "0011aabc/9"}};
  return event;
}

inline core::RuleStatusEvent full_rule_status() {
  core::RuleStatusEvent event;
  event.rule = "loss_plateau";
  event.rule_type = "custom";
  event.rule_version = "2";
  event.status = core::RuleState::issues_found;
  event.previous = core::RuleState::in_progress;
  event.reason = "first hit";
  event.missing = {"collection gradients"};
  event.evaluations = {{"hit", 3}, {"ok", 120}};
  event.summary = {{"node-a", core::ValueMap{{"gpu", core::ValueMap{{"p50", 41.5}, {"max", 66}}}}},
                   {"means", "too little work for it"},
                   {"rounds", core::ValueList{0, 5, 10}}};
  event.run = run_ref();
  event.time = at();
  return event;
}

inline core::Command stop_command() {
  core::Command command;
  command.run = core::run_uid_for("digits", "exploding");
  command.attempt = 1;
  command.launch = {{"node-a", "0011aabb/7"}};
  command.action = "stop";
  command.command_id = core::command_id(command.run, 1, "stop");
  command.ranks = {0, 4294967294U};
  command.revision = 3;
  command.issued_at = at();
  command.expires_at = at(60'000'000'000);
  command.requested_by = "rule exploding_tensor";
  command.reason = {"exploding_tensor", "zupjkayr7ead6ilp76aiztqoiy", 2, "iss_x",
                    "gradients exploded"};
  command.dry_run = true;
  command.args = core::ValueMap{{"mode", "checkpoint_then_stop"},
                                {"deadline", core::ValueMap{{"ack", "30s"}}}};
  return command;
}

inline core::Ack full_ack() {
  core::Ack ack;
  ack.command_id = "cmd_76sjzs23utzfmje34sq7tnw4rf";
  ack.action = "stop";
  ack.phase = "checkpoint_done";
  ack.run = core::run_uid_for("digits", "exploding");
  ack.attempt = 2;
  ack.rank = 1;
  ack.worker = "worker_1";
  ack.step = 415;
  ack.time = at();
  ack.reason = "because";
  ack.checkpoint_path = "/ckpt/415.pt";
  ack.checkpoint_bytes = 5'000'000'000;
  ack.version = "v1";
  ack.effective_step = 416;
  ack.revision = 4;
  ack.incarnation = 1767323045678;
  ack.node = "node-a";
  ack.exit_code = 77;
  return ack;
}

inline core::Delivery full_delivery() {
  core::Delivery delivery;
  delivery.notification_id = "ntf_abc";
  delivery.integration = "oncall/webhook/0";
  delivery.type = "webhook";
  delivery.receiver = "oncall";
  delivery.route_id = "root/0";
  delivery.group_key = "{}:{job=\"digits\"}";
  delivery.reason = "first";
  delivery.kind = core::NotificationKind::update;
  delivery.attempt = 3;
  delivery.state = core::DeliveryState::dead;
  delivery.outcome = core::OutcomeClass::bad_payload;
  delivery.code = "422";
  delivery.detail = "no such field";
  delivery.latency = core::Duration{12'345'678};
  delivery.handles = {{"dedup_key", "k"}, {"message_id", "7"}};
  delivery.next_attempt_at = at(9);
  delivery.config_version = "c7";
  delivery.issues = {{"zupj", 2, "iss_x"}, {"abcd", 1, "iss_y"}};
  delivery.stages = {at(1), at(2), at(3), at(4), at(5), at(6)};
  return delivery;
}

inline core::Notification full_notification() {
  core::Notification notification;
  notification.notification_id = "ntf_abc";
  notification.integration = "oncall/webhook/0";
  notification.type = "webhook";
  notification.receiver = "oncall";
  notification.route_id = "root/0";
  notification.group_key = "{}:{}";
  notification.group_hash = "ab12";
  notification.generation = 4;
  notification.reason = "all_resolved";
  notification.why = "Escalated to lead.";
  notification.kind = core::NotificationKind::close;
  notification.firing = false;
  notification.group_labels = {{"job", "digits"}};
  notification.common_labels = {{"job", "digits"}, {"rule", "exploding_tensor"}};
  notification.issues = {{"zupj", 3, full_issue(), core::AckTold{"ada", "looking", at(2), at(9)}}};
  notification.suppressed = {{"other", 1, full_issue(), std::nullopt}};
  notification.firing_count = 1;
  notification.resolved_count = 2;
  notification.truncated = 5;
  notification.decided_at = at(3);
  notification.expires_at = at(4);
  notification.config_version = "c7";
  notification.rendered = R"({"body":"{\"nested\":1}"})";
  return notification;
}

}  // namespace tocsin::ingest::fixture
