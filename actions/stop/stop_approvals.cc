#include "actions/stop/stop_approvals.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "actions/contract/own_issues.h"
#include "actions/contract/shell_word.h"
#include "actions/stop/stop_command.h"
#include "actions/stop/stop_failed.h"
#include "actions/stop/stop_quorum.h"
#include "actions/stop/stop_suspect.h"

namespace tocsin::actions {

using core::Command;
using core::StopRequest;
using core::WallTime;

namespace {

constexpr std::size_t kMostRequests = 10'000;
constexpr core::Duration kRequestKept = std::chrono::hours(7 * 24);  // as long as the commands
constexpr core::Duration kNews = std::chrono::hours(1);  // less than the router remembers ids for
constexpr core::Duration kWordAfterQuorum = std::chrono::minutes(30);
constexpr std::string_view kByQuorum = "quorum";
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
  if (request.state == "recovered") return "cancelled: what asked for it has recovered";
  if (request.state == "held_back") return "held back by max_stops";
  return "void: another attempt runs";
}

// Did all that asked for it come to an end? Of what nothing is known nothing is concluded.
bool recovered(const StopRequest& request, const FiringIssues* firing) {
  if (firing == nullptr || request.reason.issue_key.empty()) return false;
  const auto is_over = [&](const core::CommandReason& one) {
    const auto fires = firing->fires(one.issue_key, one.episode);
    return fires.has_value() && !*fires;
  };
  return is_over(request.reason) && std::all_of(request.also.begin(), request.also.end(), is_over);
}

// What became of a request that nobody has decided; nullopt: it waits on. Words said before `heard`
// have been read.
std::optional<StopRequest> settled(const StopRequest& request, StopLedger& ledger,
                                   const std::optional<core::CurrentRun>& current,
                                   const FiringIssues* firing, WallTime now, WallTime heard) {
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
  if (recovered(request, firing)) return core::decided(request, "recovered", "router", now);
  if (now < request.until || heard < request.until) return std::nullopt;
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
  return approved(std::move(out), request.decided_by);
}

// A stop that comes later than it would have been in force is not what was approved.
bool in_time(const StopRequest& request, WallTime now) {
  return request.decided_at && now < *request.decided_at + terms_from(request.terms).expires;
}

// Whoever writes that it waits has not heard the word: nobody asks again for what is over, unless it
// had recovered.
bool is_over(const StopRequest& kept) {
  return kept.state != "waiting" && kept.state != "recovered";
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

core::Issue held_back(const StopRequest& request, std::uint64_t recent, const std::string& cluster,
                      WallTime now) {
  FailedStop failed;
  failed.run = request.run;
  failed.labels = request.labels;
  failed.cluster = cluster;
  failed.why = StopFailure::held_back;
  failed.detail = "max_stops, " + std::to_string(recent) + " in the last " +
                  core::to_text(quorum_from(request.quorum).limit.per);
  failed.command_id = request.id;
  failed.caused_by_rule = request.reason.rule;
  failed.at = now;
  return stop_failed_issue(failed);
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
    if (request->state == "waiting" && is_over(kept)) {
      overwritten_.insert(id);
      return;
    }
    overwritten_.erase(id);
    if (request->state == "rejected" && kept.state != "rejected") rejected_.insert(id);
    kept = std::move(*request);
    if (suspected(kept) && kept.decided_at) {
      WallTime& at = cleared_[kept.reason.rule];
      at = std::max(at, *kept.decided_at);
    }
  }
}

std::optional<StopRequest> StopApprovals::find(const std::string& id) const {
  const core::MutexLock lock(mutex_);
  const auto found = requests_.find(id);
  return found == requests_.end() ? std::nullopt : std::optional(found->second);
}

std::set<core::RunUid> StopApprovals::asked_since(const std::string& rule, WallTime since) const {
  std::set<core::RunUid> out;
  const core::MutexLock lock(mutex_);
  for (const auto& [id, request] : requests_) {
    if (request.reason.rule == rule && request.asked_at >= since) out.insert(request.run.uid);
  }
  return out;
}

std::optional<StopRequest> StopApprovals::first_suspect(const std::string& rule) const {
  std::optional<StopRequest> out;
  const core::MutexLock lock(mutex_);
  for (const auto& [id, request] : requests_) {
    if (!waits_for_suspicion(request) || request.reason.rule != rule) continue;
    if (!out || std::pair(request.asked_at, request.id) < std::pair(out->asked_at, out->id)) {
      out = request;
    }
  }
  return out;
}

bool StopApprovals::begin(const StopRequest& request) {
  const core::MutexLock lock(mutex_);
  const auto kept = requests_.find(request.id);
  if (kept != requests_.end() && kept->second.state == "recovered") {
    kept->second = request;
    return true;
  }
  if (requests_.size() >= kMostRequests) return false;
  return requests_.emplace(request.id, request).second;
}

void StopApprovals::forget(const std::string& id) {
  const core::MutexLock lock(mutex_);
  requests_.erase(id);
}

struct StopApprovals::Turn {
  StopLedger& ledger;
  const Find& find;
  const std::string& cluster;
  WallTime now;
  const FiringIssues* firing;
  WallTime heard;

  /// A word was given, and no command is written yet.
  void write_stop(StopRequest& request, Due& out) const;
};

StopApprovals::Due StopApprovals::due(StopLedger& ledger, const Find& find,
                                      const std::string& cluster, WallTime now,
                                      const FiringIssues* firing, std::optional<WallTime> heard) {
  Due out;
  const Turn turn{ledger, find, cluster, now, firing, heard.value_or(now)};
  const core::MutexLock lock(mutex_);
  // Of what is older the topic may no longer say whether its command was written.
  std::erase_if(requests_,
                [&](const auto& one) { return now - one.second.asked_at > kRequestKept; });
  for (const std::string& id : overwritten_) {
    if (const auto kept = requests_.find(id); kept != requests_.end()) {
      out.decided.push_back(kept->second);
    }
  }
  overwritten_.clear();
  for (auto& [id, request] : requests_) {
    // Said again after a restart: its event id is the same.
    if (rejected_.erase(id) > 0 && request.decided_at && now - *request.decided_at < kNews &&
        request.quorum.is_null() && !suspected(request)) {
      out.issues.push_back(stop_waits_over(request, cluster));
    }
    if (request.state == "waiting" || request.state == "approved") follow(request, turn, out);
  }
  suspicions_over(turn, out);
  return out;
}

void StopApprovals::follow(StopRequest& request, const Turn& turn, Due& out) {
  const WallTime now = turn.now;
  const auto current = turn.find(request.run.uid);
  // A quorum is nobody's business, and a suspected rule is told of once.
  const bool was_told = request.quorum.is_null() && !suspected(request);
  if (auto now_is = settled(request, turn.ledger, current, turn.firing, now, turn.heard)) {
    if (suspected(request)) cleared_[request.reason.rule] = now;
    request = std::move(*now_is);
    out.decided.push_back(request);
    if (was_told) out.issues.push_back(stop_waits_over(request, turn.cluster));
    if (request.state == "expired" && request.quorum.is_null()) {
      out.issues.push_back(not_approved(request, turn.cluster));
    }
  }
  if (request.state == "waiting" && !request.quorum.is_null()) follow_quorum(request, turn, out);
  if (request.state == "approved" && !turn.ledger.who_asked(request.id)) {
    turn.write_stop(request, out);
  }
}

void StopApprovals::Turn::write_stop(StopRequest& request, Due& out) const {
  const auto current = find(request.run.uid);
  if (!in_time(request, now)) {
    out.issues.push_back(too_late(request, cluster, now));
    request = core::decided(request, "expired", request.decided_by, now, request.comment);
    out.decided.push_back(request);
    return;
  }
  const std::uint32_t newest = current ? current->attempt : 0;
  const bool gone = newest > request.run.attempt || (current && current->ended);
  if (gone) {
    request = core::decided(request, newest > request.run.attempt ? "replaced" : "ended",
                            request.decided_by, now, request.comment);
    out.decided.push_back(request);
    return;
  }
  if (newest < request.run.attempt && current) return;  // its launch is not known yet
  Command command = command_of(request, current, now);
  const bool by_rules = request.decided_by == kByQuorum;
  const auto answer =
      ledger.reserve(command, by_rules ? quorum_from(request.quorum).limit : kNoLimit);
  if (answer.leave == StopLedger::Leave::held_back) {
    out.issues.push_back(held_back(request, answer.recent, cluster, now));
    request = core::decided(request, "held_back", "router", now);
    out.decided.push_back(request);
    return;
  }
  if (answer.leave != StopLedger::Leave::send) return;
  command.revision = answer.revision;
  out.commands.push_back(std::move(command));
  if (request.quorum.is_null() && !suspected(request)) {
    out.issues.push_back(stop_waits_over(request, cluster));
  }
}

void StopApprovals::follow_quorum(StopRequest& request, const Turn& turn, Due& out) {
  if (turn.firing == nullptr) return;
  const WaitingQuorum waiting = quorum_from(request.quorum);
  const auto firing = turn.firing->rules_of(request.run.uid, request.run.attempt);
  if (!waiting.quorum.met(firing)) return;
  if (waiting.word.empty()) {
    request = core::decided(request, "approved", std::string(kByQuorum), turn.now,
                            waiting.quorum.so_far(firing));
  } else {
    request.why = waiting.word;
    request.quorum = {};
    request.until = turn.now + kWordAfterQuorum;
    out.issues.push_back(stop_waits_issue(request, turn.cluster, place_));
  }
  out.decided.push_back(request);
}

void StopApprovals::suspicions_over(const Turn& turn, Due& out) {
  for (auto one = cleared_.begin(); one != cleared_.end();) {
    const std::string& rule = one->first;
    const WallTime at = one->second;
    const bool waits = std::any_of(requests_.begin(), requests_.end(), [&](const auto& kept) {
      return waits_for_suspicion(kept.second) && kept.second.reason.rule == rule;
    });
    if (!waits && turn.now - at < kNews) {
      out.issues.push_back(stop_suspect_over(rule, turn.cluster, at));
    }
    one = waits ? std::next(one) : cleared_.erase(one);
  }
}

core::Issue stop_waits_issue(const StopRequest& request, const std::string& cluster,
                             const std::vector<std::string>& place) {
  core::Issue out = issue_of(request, cluster);
  std::string at;
  for (const std::string& word : place) at += " " + shell_word(word);
  out.event_id = core::make_id(
      "iss_", {out.rule, to_text(request.run.uid), std::to_string(request.run.attempt), "waiting",
               std::to_string(core::nanoseconds(request.asked_at))});
  out.sequence = static_cast<std::uint64_t>(core::nanoseconds(request.asked_at));
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

core::Command approved(core::Command command, const std::string& by) {
  if (const auto* args = core::as<core::ValueMap>(command.args)) {
    core::ValueMap more = *args;
    more.emplace_back("approved_by", by);
    command.args = std::move(more);
  }
  return command;
}

core::Issue stop_waits_over(const StopRequest& request, const std::string& cluster) {
  core::Issue out = issue_of(request, cluster);
  out.event_id = core::make_id(
      "iss_", {out.rule, to_text(request.run.uid), std::to_string(request.run.attempt),
               request.state, std::to_string(core::nanoseconds(request.asked_at))});
  out.sequence = static_cast<std::uint64_t>(core::nanoseconds(request.asked_at)) + 1;
  out.status = core::IssueStatus::resolved;
  out.resolution = request.state == "replaced"    ? core::Resolution::superseded
                   : request.state == "ended"     ? core::Resolution::job_ended
                   : request.state == "recovered" ? core::Resolution::recovered
                                                  : core::Resolution::manual;
  // Whoever decides may have a slow clock: an end is never before its start.
  out.time = std::max(request.decided_at.value_or(request.until), out.starts_at);
  out.ends_at = out.time;
  out.summary = "The stop of " + run_name(request) + " (attempt " +
                std::to_string(request.run.attempt) + ") was " + how_decided(request) + ".";
  return out;
}

}  // namespace tocsin::actions
