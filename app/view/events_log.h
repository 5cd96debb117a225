// What operators and the demo read in the log: issues, jobs, decisions, deliveries, stops.
#pragma once

#include <string>

#include "core/command.h"
#include "core/issue.h"
#include "core/log.h"
#include "core/notification.h"

namespace tocsin::app {

/// `issue_fired` / `issue_resolved`, once the event is durable.
void log_issue(core::Log& log, const core::Issue& issue, core::WallTime committed);
/// `job_started` / `job_ended`.
void log_job(core::Log& log, const core::JobEvent& event);
/// `rule_summed_up`, of a rule that sums up a run, at its end; of other statuses nothing.
void log_rule(core::Log& log, const core::RuleStatusEvent& event);
/// `notification_decided`.
void log_notification(core::Log& log, const core::Notification& notification);
/// `delivery_finished` for final states, `delivery_retried` else.
void log_delivery(core::Log& log, const core::Delivery& delivery);
/// `stop_asked`: a stop, as it was written; `job` may be empty.
void log_stop(core::Log& log, const core::Command& command, const std::string& job);
/// `stop_progress`: one answer of a worker to a stop command.
void log_ack(core::Log& log, const core::Ack& ack);
/// `capture_answered`: the answer of a worker to whoever asked for captures, or of a node's agent; a refusal is a
/// warning.
void log_capture_answer(core::Log& log, const core::Ack& ack);

}  // namespace tocsin::app
