#include "app/view/stop_progress.h"

#include <algorithm>
#include <utility>

#include "actions/actions.h"

namespace tocsin::app {
namespace {

std::string of_ranks(std::size_t count, std::uint32_t all) {
  if (all == 1) return "the run has";
  return std::to_string(count) + " of " + std::to_string(all) + " ranks have";
}

}  // namespace

StopProgress::StopProgress(core::Command command, std::uint32_t world_size)
    : command_(std::move(command)), world_size_(std::max<std::uint32_t>(world_size, 1)) {
  if (!command_.ranks.empty()) world_size_ = static_cast<std::uint32_t>(command_.ranks.size());
}

bool StopProgress::on_command(const core::Command& command) {
  if (command.command_id != command_.command_id || command.revision <= command_.revision) {
    return false;
  }
  command_ = command;
  refused_.clear();
  return true;
}

bool StopProgress::on_ack(const core::Ack& ack) {
  if (ack.command_id != command_.command_id) return false;
  if (ack.action == actions::kPlatformAck) {
    platform_ = ack.phase == "platform_force" ? "its platform was asked again, harder"
                                              : "its platform was asked to end it";
    return true;
  }
  heard_.insert(ack.rank);
  if (ack.phase == "refused") {
    // Who has it already, or is past its step, gets the next revision.
    const bool again = ack.reason == "duplicate" || ack.reason == "too_late";
    if (!again && ack.revision >= command_.revision) refused_[ack.rank] = ack.reason;
  } else if (ack.phase != "received") {
    refused_.erase(ack.rank);
    obeying_.insert(ack.rank);
    if (ack.phase == "stopped") stopped_.insert(ack.rank);
  }
  return true;
}

void StopProgress::on_job(const core::JobEvent& event) {
  if (event.run.uid != command_.run) return;
  if (event.run.attempt > command_.attempt) newer_ = std::max(newer_, event.run.attempt);
  if (event.run.attempt != command_.attempt || event.phase != core::JobPhase::ended) return;
  ended_ = true;
  outcome_ = event.outcome;
}

void StopProgress::on_issue(const core::Issue& issue) {
  const bool ours = issue.run.uid == command_.run && issue.run.attempt == command_.attempt &&
                    actions::is(issue.rule, actions::ActionIssue::stop_failed);
  if (ours && issue.time >= command_.issued_at) failure_ = issue.summary;
}

StopEnd StopProgress::end(core::WallTime now) const {
  if (ended_ || stopped_.size() >= world_size_) return StopEnd::stopped;
  if (newer_ > 0) return StopEnd::replaced;
  if (!failure_.empty()) return StopEnd::failed;
  if (obeying_.empty() && refused_.size() >= world_size_) return StopEnd::refused;
  const bool late = command_.expires_at && *command_.expires_at <= now;
  return obeying_.empty() && late ? StopEnd::expired : StopEnd::open;
}

std::string StopProgress::sentence(core::WallTime now) const {
  switch (end(now)) {
    case StopEnd::stopped:
      if (ended_) return "the run has ended: " + (outcome_.empty() ? "unknown" : outcome_);
      return of_ranks(stopped_.size(), world_size_) + " stopped";
    case StopEnd::replaced:
      return "attempt " + std::to_string(newer_) +
             " of the run has started meanwhile; this request does not stop it";
    case StopEnd::failed:
      return failure_;
    case StopEnd::refused:
      return of_ranks(refused_.size(), world_size_) + " refused it: " + refused_.begin()->second;
    case StopEnd::expired:
      return "no rank accepted it in time: the request expired";
    case StopEnd::open:
      break;
  }
  if (!platform_.empty()) return platform_;
  if (heard_.empty()) return "no rank has replied yet";
  std::string out = of_ranks(stopped_.size(), world_size_) + " stopped";
  if (world_size_ == 1)
    out = obeying_.empty() ? "the run received it" : "the run accepted it";
  else
    out += ", " + std::to_string(obeying_.size() - stopped_.size()) + " accepted it";
  return out;
}

}  // namespace tocsin::app
