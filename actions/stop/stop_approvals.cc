#include "actions/stop/stop_approvals.h"

#include <algorithm>
#include <limits>

#include "actions/contract/own_issues.h"
#include "actions/contract/shell_word.h"
#include "actions/stop/stop_command.h"
#include "actions/stop/stop_failed.h"

namespace tocsin::actions {

using core::Command;
using core::StopRequest;
using core::WallTime;

namespace {

constexpr std::size_t kMostRequests = 10'000;
constexpr core::Duration kRequestKept = std::chrono::hours(7 * 24);  // as long as the commands
constexpr core::Duration kNews = std::chrono::hours(1);  // less than the router remembers ids for
constexpr StopLimit kNoLimit{std::numeric_limits<std::uint64_t>::max(), std::chrono::seconds(1)};

core::Issue issue_of(const StopRequest& request, const std::string& cluster) {
  const std::string rule(own_issue(ActionIssue::stop_waits).name);
  const std::string uid = to_text(request.run.uid);
  core::Issue out;
  out.source = "/" + cluster + "/rules/" + rule;
  out.rule = out.rule_type = rule;
  out.severity = core::Severity::error;
  out.labels = without_unit(request.labels);
  out.labels.set("rule", rule);
  out.labels.set("severity", "error");
  out.labels.set("cluster", cluster);
  out.labels.set("run_uid", uid);
  if (!request.run.job.empty()) out.labels.set("job", request.run.job);
  out.run = request.run;
  out.starts_at = request.asked_at;
  out.evidence.values = core::ValueMap{{"command_id", request.id},
                                       {"because_of", request.reason.rule},
                                       {"until", core::to_rfc3339(request.until)}};
  out.evidence.first_seen = request.asked_at;
  return out;
}

std::string run_name(const StopRequest& request) {
  return request.run.job.empty() ? "Run " + to_text(request.run.uid) : request.run.job;
}

std::string how_decided(const StopRequest& request) {
  if (request.state == "approved") return "approved by " + request.decided_by;
  if (request.state == "rejected") return "rejected by " + request.decided_by;
  if (request.state == "expired") return "not approved in time";
  if (request.state == "ended") return "void: the attempt has ended";
  return "void: another attempt runs";
}

// What became of a request that nobody has decided; nullopt: it waits on.
std::optional<StopRequest> settled(const StopRequest& request, StopLedger& ledger,
                                   const std::optional<core::CurrentRun>& current, WallTime now) {
  if (request.state != "waiting") return std::nullopt;
  if (const auto who = ledger.who_asked(request.id)) {
    return core::decided(
        request, "approved", *who, now,
        *who == "router" ? "asked for without approval elsewhere" : "asked for by `tocsin stop`");
  }
  const std::uint32_t newest = current ? current->attempt : 0;
  if (newest > request.run.attempt) return core::decided(request, "replaced", "router", now);
  if (newest == request.run.attempt && current->ended) {
    return core::decided(request, "ended", "router", now);
  }
  if (now < request.until) return std::nullopt;
  if (request.on_timeout == "proceed") {
    return core::decided(request, "approved", "approval_timeout", now);
  }
  return core::decided(request, "expired", "router", now);
}

Command command_of(const StopRequest& request, const std::optional<core::CurrentRun>& current,
                   WallTime now) {
  core::Issue about;
  about.run = request.run;
  about.time = now;
  Command out = stop_command(terms_from(request.terms), about, current, now);
  out.requested_by = "router";
  out.reason = request.reason;
  if (const auto* args = core::as<core::ValueMap>(out.args)) {
    core::ValueMap more = *args;
    more.emplace_back("approved_by", request.decided_by);
    out.args = std::move(more);
  }
  return out;
}

// A stop that comes later than it would have been in force is not what was approved.
bool in_time(const StopRequest& request, WallTime now) {
  return request.decided_at && now < *request.decided_at + terms_from(request.terms).expires;
}

core::Issue expired_issue(const StopRequest& request, std::string detail,
                          const std::string& cluster, WallTime at) {
  FailedStop out;
  out.run = request.run;
  out.labels = request.labels;
  out.cluster = cluster;
  out.why = StopFailure::expired;
  out.detail = std::move(detail);
  out.command_id = request.id;
  out.caused_by_rule = request.reason.rule;
  out.at = at;
  return stop_failed_issue(out);
}

core::Issue not_approved(const StopRequest& request, const std::string& cluster) {
  const std::string within = core::to_text(request.until - request.asked_at);
  return expired_issue(request, "nobody approved it within " + within, cluster, request.until);
}

core::Issue too_late(const StopRequest& request, const std::string& cluster, WallTime now) {
  return expired_issue(request, "approved by " + request.decided_by + ", and not written in time",
                       cluster, now);
}

}  // namespace

void StopApprovals::on_record(const std::string& id, std::optional<StopRequest> request) {
  const core::MutexLock lock(mutex_);
  if (!request) {
    requests_.erase(id);
  } else if (requests_.size() < kMostRequests || requests_.contains(id)) {
    core::StopRequest& kept = requests_[id];
    if (request->state == "rejected" && kept.state != "rejected") rejected_.insert(id);
    kept = std::move(*request);
  }
}

std::optional<StopRequest> StopApprovals::find(const std::string& id) const {
  const core::MutexLock lock(mutex_);
  const auto found = requests_.find(id);
  return found == requests_.end() ? std::nullopt : std::optional(found->second);
}

bool StopApprovals::begin(const StopRequest& request) {
  const core::MutexLock lock(mutex_);
  if (requests_.size() >= kMostRequests) return false;
  return requests_.emplace(request.id, request).second;
}

void StopApprovals::forget(const std::string& id) {
  const core::MutexLock lock(mutex_);
  requests_.erase(id);
}

StopApprovals::Due StopApprovals::due(StopLedger& ledger, const Find& find,
                                      const std::string& cluster, WallTime now) {
  Due out;
  const core::MutexLock lock(mutex_);
  // Of what is older the topic may no longer say whether its command was written.
  std::erase_if(requests_,
                [&](const auto& one) { return now - one.second.asked_at > kRequestKept; });
  for (auto& [id, request] : requests_) {
    // Said again after a restart: its event id is the same.
    if (rejected_.erase(id) > 0 && request.decided_at && now - *request.decided_at < kNews) {
      out.issues.push_back(stop_waits_over(request, cluster));
    }
    if (request.state != "waiting" && request.state != "approved") continue;
    const auto current = find(request.run.uid);
    if (auto now_is = settled(request, ledger, current, now)) {
      request = std::move(*now_is);
      out.decided.push_back(request);
      out.issues.push_back(stop_waits_over(request, cluster));
      if (request.state == "expired") out.issues.push_back(not_approved(request, cluster));
    }
    if (request.state != "approved" || ledger.who_asked(id)) continue;
    if (!in_time(request, now)) {
      out.issues.push_back(too_late(request, cluster, now));
      request = core::decided(request, "expired", request.decided_by, now, request.comment);
      out.decided.push_back(request);
      continue;
    }
    const std::uint32_t newest = current ? current->attempt : 0;
    const bool gone = newest > request.run.attempt || (current && current->ended);
    if (gone) {
      request = core::decided(request, newest > request.run.attempt ? "replaced" : "ended",
                              request.decided_by, now, request.comment);
      out.decided.push_back(request);
      continue;
    }
    if (newest < request.run.attempt && current) continue;  // its launch is not known yet
    Command command = command_of(request, current, now);
    const auto answer = ledger.reserve(command, kNoLimit);
    if (answer.leave != StopLedger::Leave::send) continue;
    command.revision = answer.revision;
    out.commands.push_back(std::move(command));
    out.issues.push_back(stop_waits_over(request, cluster));
  }
  return out;
}

core::Issue stop_waits_issue(const StopRequest& request, const std::string& cluster,
                             const std::vector<std::string>& place) {
  core::Issue out = issue_of(request, cluster);
  std::string at;
  for (const std::string& word : place) at += " " + shell_word(word);
  out.event_id = core::make_id(
      "iss_", {out.rule, to_text(request.run.uid), std::to_string(request.run.attempt), "waiting"});
  out.sequence = std::uint64_t{request.run.attempt} * 2;
  out.time = request.asked_at;
  out.summary = run_name(request) + " is to be stopped (attempt " +
                std::to_string(request.run.attempt) + ") and waits for approval until " +
                core::to_rfc3339(request.until) + ": " + request.reason.summary;
  out.description = "Why it waits: " + request.why + ". Without a word it is " +
                    (request.on_timeout == "proceed" ? "stopped" : "not stopped") + " then.";
  out.recommendation = "Stop it: tocsin stops approve " + request.id + at +
                       "  Let it go on: tocsin stops cancel " + request.id + at;
  return out;
}

core::Issue stop_waits_over(const StopRequest& request, const std::string& cluster) {
  core::Issue out = issue_of(request, cluster);
  out.event_id = core::make_id("iss_", {out.rule, to_text(request.run.uid),
                                        std::to_string(request.run.attempt), request.state});
  out.sequence = std::uint64_t{request.run.attempt} * 2 + 1;
  out.status = core::IssueStatus::resolved;
  out.resolution = request.state == "replaced" ? core::Resolution::superseded
                   : request.state == "ended"  ? core::Resolution::job_ended
                                               : core::Resolution::manual;
  out.time = request.decided_at.value_or(request.until);
  out.ends_at = out.time;
  out.summary = "The stop of " + run_name(request) + " (attempt " +
                std::to_string(request.run.attempt) + ") was " + how_decided(request) + ".";
  return out;
}

}  // namespace tocsin::actions
