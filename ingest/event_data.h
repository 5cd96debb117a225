// Private to this room: the `data` of each event as JSON and back (wire-and-api §9.2 to §9.6).
// The readers leave the first wrong field in the Fields' error and never throw.
#pragma once

#include <map>
#include <string>

#include "core/command.h"
#include "core/issue.h"
#include "core/notification.h"
#include "ingest/events.h"
#include "ingest/json_support.h"

namespace tocsin::ingest {

Json run_json(const core::RunRef& run);
void read_run(const Fields& in, core::RunRef& out);

Json evidence_json(const core::Evidence& from);
void read_evidence(const Fields& in, core::Evidence& out);

/// JobEvent::launch and Command::launch.
Json launch_json(const std::map<std::string, std::string>& launch);
void read_launch(const Fields& in, std::map<std::string, std::string>& out);

/// Labels stand in it as they are. `severity` is a field of its own only where the label does not
/// say the same.
Json issue_data(const core::Issue& issue);
/// What the producer left out keeps its default; lifecycle is routing's. No attempt reads as 0.
void read_issue(const Fields& in, core::Issue& out);

Json job_data(const core::JobEvent& event);
void read_job(const Fields& in, core::JobEvent& out);

Json rule_data(const core::RuleStatusEvent& event);
void read_rule(const Fields& in, core::RuleStatusEvent& out);

Json command_data(const core::Command& command);
void read_command(const Fields& in, core::Command& out);

Json ack_data(const core::Ack& ack);
void read_ack(const Fields& in, core::Ack& out);

Json delivery_data(const core::Delivery& delivery);
void read_delivery(const Fields& in, core::Delivery& out);

/// One issue with everything that stands outside its data: nothing is lost.
Json notified_json(const core::NotifiedIssue& issue);
void read_notified(const Fields& in, core::NotifiedIssue& out);

Json notification_data(const core::Notification& notification);
void read_notification(const Fields& in, core::Notification& out);

/// Bytes of all annotations: texts, and names of the further ones.
std::size_t annotation_bytes(const core::Issue& issue);
/// Cuts the longest annotations until all together fit; true when something was cut.
bool cut_annotations(core::Issue& issue, std::size_t max_bytes);

}  // namespace tocsin::ingest
