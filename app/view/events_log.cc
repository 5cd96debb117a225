#include "app/view/events_log.h"

#include "app/view/run_card.h"
#include "app/view/summary_text.h"
#include "core/episode.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostOfALoggedSummary =
    1000;  // bytes of a line; all of it stands in the event

std::string text(std::string_view view) { return std::string(view); }

core::Value time_text(core::WallTime time) {
  if (core::nanoseconds(time) == 0) return {};
  return core::to_rfc3339(time);
}

}  // namespace

void log_issue(core::Log& log, const core::Issue& issue, core::WallTime committed) {
  const bool firing = issue.status == core::IssueStatus::firing;
  const std::optional<std::int64_t> step = core::step_of_news(issue);
  log.info(firing ? "issue_fired" : "issue_resolved",
           {{"rule", issue.rule},
            {"severity", text(core::to_string(issue.severity))},
            {"job", issue.run.job},
            {"run", core::to_text(issue.run.uid)},
            {"attempt", std::int64_t{issue.run.attempt}},
            {"step", step ? core::Value(*step) : core::Value()},
            {"tensor", issue.labels.get("tensor")},
            {"worker", issue.labels.get("worker")},
            {"kind", issue.kind},
            {"shadow", issue.shadow ? core::Value("shadow") : core::Value()},
            {"resolution", text(core::to_string(issue.resolution))},
            {"summary", core::news_of(issue)},
            {"advice", firing ? issue.recommendation : std::string()},
            {"event_id", issue.event_id},
            {"measured_at", time_text(issue.measured_at)},
            {"published_at", time_text(issue.published_at)},
            {"evaluated_at", time_text(issue.evaluated_at)},
            {"committed_at", time_text(committed)}});
}

void log_job(core::Log& log, const core::JobEvent& event) {
  if (event.phase == core::JobPhase::heartbeat) return;
  log.info(event.phase == core::JobPhase::started ? "job_started" : "job_ended",
           {{"job", event.run.job},
            {"run", core::to_text(event.run.uid)},
            {"attempt", std::int64_t{event.run.attempt}},
            {"outcome", event.outcome},
            {"exit_code", event.exit_code ? core::Value(*event.exit_code) : core::Value()},
            {"step", event.step ? core::Value(*event.step) : core::Value()}});
}

void log_rule(core::Log& log, const core::RuleStatusEvent& event) {
  // What it comes to while the run goes on is told every minute: `tocsin status` shows it.
  if (event.summary.empty() || event.status == core::RuleState::in_progress) return;
  if (is_card(event.summary)) return;  // told again and again while a run goes on: `tocsin status`
  log.info("rule_summed_up", {{"rule", event.rule},
                              {"job", event.run.job},
                              {"run", core::to_text(event.run.uid)},
                              {"attempt", std::int64_t{event.run.attempt}},
                              {"status", text(core::to_string(event.status))},
                              {"summary", summary_line(event.summary, kMostOfALoggedSummary)}});
}

void log_notification(core::Log& log, const core::Notification& notification) {
  log.info("notification_decided", {{"notification_id", notification.notification_id},
                                    {"integration", notification.integration},
                                    {"type", notification.type},
                                    {"receiver", notification.receiver},
                                    {"reason", notification.reason},
                                    {"kind", text(core::to_string(notification.kind))},
                                    {"group_key", notification.group_key},
                                    {"run", notification.common_labels.get("run_uid")},
                                    {"issues", std::uint64_t{notification.issues.size()}}});
}

void log_delivery(core::Log& log, const core::Delivery& delivery) {
  const bool final = delivery.state != core::DeliveryState::pending;
  const bool bad =
      delivery.state == core::DeliveryState::dead || delivery.state == core::DeliveryState::expired;
  log.write(bad ? core::Level::error : core::Level::info,
            final ? "delivery_finished" : "delivery_retried",
            {{"notification_id", delivery.notification_id},
             {"integration", delivery.integration},
             {"type", delivery.type},
             {"receiver", delivery.receiver},
             {"kind", text(core::to_string(delivery.kind))},
             {"state", text(core::to_string(delivery.state))},
             {"class", text(core::to_string(delivery.outcome))},
             {"code", delivery.code},
             {"detail", delivery.detail},
             {"attempt", std::int64_t{delivery.attempt}},
             {"latency_ms", std::chrono::duration<double, std::milli>(delivery.latency).count()},
             {"measured_at", time_text(delivery.stages.measured)},
             {"decided_at", time_text(delivery.stages.decided)},
             {"sent_at", time_text(delivery.stages.sent)},
             {"answered_at", time_text(delivery.stages.answered)}});
}

void log_stop(core::Log& log, const core::Command& command, const std::string& job) {
  const core::Value* step = core::find(command.args, "not_before_step");
  log.info("stop_asked", {{"command_id", command.command_id},
                          {"job", job},
                          {"run", core::to_text(command.run)},
                          {"attempt", std::int64_t{command.attempt}},
                          {"revision", std::uint64_t{command.revision}},
                          {"mode", core::text_at(command.args, "mode")},
                          {"not_before_step", step == nullptr ? core::Value() : *step},
                          {"requested_by", command.requested_by},
                          {"rule", command.reason.rule},
                          {"reason", command.reason.summary}});
}

void log_ack(core::Log& log, const core::Ack& ack) {
  log.info("stop_progress", {{"command_id", ack.command_id},
                             {"action", ack.action},
                             {"phase", ack.phase},
                             {"run", core::to_text(ack.run)},
                             {"worker", ack.worker},
                             {"step", ack.step},
                             {"reason", ack.reason},
                             {"checkpoint", ack.checkpoint_path},
                             {"at", time_text(ack.time)}});
}

void log_capture_answer(core::Log& log, const core::Ack& ack) {
  log.write(
      ack.phase == "refused" ? core::Level::warn : core::Level::info, "capture_answered",
      {{"action", ack.action},
       {"phase", ack.phase},
       {"run", ack.run.nil() ? "" : core::to_text(ack.run)},
       {"worker", ack.run.nil() ? "agent on " + ack.node : ack.worker},
       {"effective_step", ack.effective_step ? core::Value(*ack.effective_step) : core::Value()},
       {"reason", ack.reason},
       {"at", time_text(ack.time)}});
}

}  // namespace tocsin::app
