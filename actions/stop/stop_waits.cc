#include "actions/stop/stop_waits.h"

#include <algorithm>
#include <utility>

#include "core/fields/stop_request.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMostReasons = 16;
constexpr core::Duration kQuorumWaits = std::chrono::hours(7 * 24);  // as long as requests are kept

bool same(const core::CommandReason& a, const core::CommandReason& b) {
  return a.issue_key == b.issue_key && a.episode == b.episode;
}

// Another issue of the attempt asks for the same stop: it goes on waiting when the first recovers.
bool add_reason(core::StopRequest& request, const core::CommandReason& reason) {
  const auto known = [&](const core::CommandReason& one) { return same(one, reason); };
  if (known(request.reason) || std::any_of(request.also.begin(), request.also.end(), known) ||
      request.also.size() >= kMostReasons) {
    return false;
  }
  request.also.push_back(reason);
  return true;
}

}  // namespace

std::string name_of(const core::RunRef& run) {
  return (run.job.empty() ? "run " : run.job + ", run ") + to_text(run.uid) + " attempt " +
         std::to_string(run.attempt);
}

StopWaits::StopWaits(const Environment& environment, std::string integration,
                     StopApprovals& approvals, const StopSettings& settings)
    : frame_(environment),
      integration_(std::move(integration)),
      cluster_(environment.cluster),
      place_(environment.place),
      publish_(environment.publish),
      approvals_(approvals),
      settings_(settings) {}

core::AttemptOutcome StopWaits::wait(const core::Command& command, const core::Issue& issue,
                                     const Why& why) const {
  core::AttemptOutcome out;
  out.handles = {{"command_id", command.command_id}};
  auto request = approvals_.find(command.command_id);
  if (!request || request->state == "recovered") {
    request = request_for(command, issue, why);
    if (!approvals_.begin(*request)) {
      return declined("refused", name_of(issue.run) + " is not stopped: too many stops wait");
    }
    if (const auto written = publish_(core::stop_request_record(*request)); !written) {
      approvals_.forget(request->id);
      return not_written(std::move(out), written.error());
    }
  } else if (request->state == "waiting") {
    bool changed = add_reason(*request, command.reason);
    if (!request->quorum.is_null() && why.quorum.empty()) {  // the rules agree: now a person
      const core::StopRequest asked = request_for(command, issue, why);
      request->quorum = {};
      request->why = asked.why;
      request->until = asked.until;
      changed = true;
    }
    if (changed) {
      if (const auto written = keep(*request); !written) {
        return not_written(std::move(out), written.error());
      }
    }
  }
  if (request->state == "waiting") return told(std::move(out), *request);
  if (request->state == "approved") {
    out.code = "already_requested";
    out.detail =
        name_of(issue.run) + " was approved by " + request->decided_by + ": " + request->id;
    return out;
  }
  return declined(request->state, name_of(issue.run) + " is not stopped: its stop was " +
                                      request->state + " (" + request->id + ")");
}

core::Status StopWaits::keep(const core::StopRequest& request) const {
  if (const auto written = publish_(core::stop_request_record(request)); !written) return written;
  approvals_.on_record(request.id, request);
  return core::ok();
}

core::AttemptOutcome StopWaits::told(core::AttemptOutcome out,
                                     const core::StopRequest& request) const {
  if (!request.quorum.is_null()) {
    out.code = "awaiting_quorum";
    out.detail = name_of(request.run) + " is not asked yet (" + request.why +
                 "); it can be approved: tocsin stops approve " + request.id;
    return out;  // nobody has to do anything
  }
  out.code = "awaiting_approval";
  out.detail = name_of(request.run) + " waits for approval until " +
               core::to_rfc3339(request.until) + " (" + request.why + "): tocsin stops approve " +
               request.id;
  // Told each time: its event id is the same, and who is told twice of it hears it once.
  const auto first =
      waits_for_suspicion(request) ? approvals_.first_suspect(request.reason.rule) : std::nullopt;
  out.issues.push_back(first ? stop_suspect_issue(*first, request.why, cluster_, place_)
                             : stop_waits_issue(request, cluster_, place_));
  return out;
}

core::StopRequest StopWaits::request_for(const core::Command& command, const core::Issue& issue,
                                         const Why& why) const {
  core::StopRequest out;
  out.id = command.command_id;
  out.run = issue.run;
  out.labels = issue.labels;
  out.reason = command.reason;
  out.severity = to_string(issue.severity);
  out.terms = terms_value(settings_.terms);
  out.why = why.quorum.empty() ? why.word : why.quorum;
  out.integration = integration_;
  out.asked_at = frame_.now();
  out.until = out.asked_at + settings_.approval_timeout;
  out.on_timeout = settings_.on_approval_timeout;
  if (!why.quorum.empty()) {
    out.quorum = quorum_value({settings_.quorum, settings_.limit, why.word});
    out.until = out.asked_at + kQuorumWaits;
  }
  return out;
}

}  // namespace tocsin::actions
