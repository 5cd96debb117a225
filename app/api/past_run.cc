#include "app/api/past_run.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "core/issue.h"
#include "core/notification.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::int64_t moment_micros(core::WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}
std::optional<std::int64_t> moment_micros_or_null(const std::optional<core::WallTime>& time) {
  return time ? std::optional(moment_micros(*time)) : std::nullopt;
}

// What records up to the moment say. Stamps are when a record was written, UTC ns.
struct Heard {
  std::vector<core::JobEvent> jobs;
  std::map<std::string, std::int64_t> began;  // by event id
  std::map<std::pair<std::string, std::int64_t>, std::int64_t>
      closed;  // by key and end, microseconds
  std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> severities;  // by key
  std::set<std::string> told;  // deliveries that arrived
  std::int64_t last = 0;
};

void hear_issue(const core::Issue& issue, std::int64_t stamp, Heard& out) {
  const std::string key = core::issue_key(issue.labels);
  out.began.emplace(issue.event_id, stamp);
  out.severities[key].emplace_back(stamp, static_cast<std::int64_t>(issue.severity));
  if (issue.status != core::IssueStatus::firing)
    out.closed[{key, moment_micros(issue.ends_at.value_or(issue.time))}] = stamp;
}

Heard heard_until(const std::vector<insights::KeptRecord>& events) {
  Heard out;
  for (const insights::KeptRecord& kept : events) {
    const core::RecordView record = kept.view();
    if (kept.record.topic == core::topic::kRouterDeliveries) {
      const auto delivery = ingest::decode_delivery(record);
      if (delivery && delivery->state == core::DeliveryState::delivered)
        out.told.insert(delivery->notification_id + "/" + delivery->integration);
      continue;
    }
    if (record.tombstone ||
        (kept.record.topic != core::topic::kIssues && kept.record.topic != core::topic::kRegistry))
      continue;
    const auto decoded = ingest::decode_event(record);
    if (!decoded) continue;
    if (const auto* issue = std::get_if<core::Issue>(&decoded->event)) {
      hear_issue(*issue, kept.timestamp, out);
      out.last = std::max(out.last, kept.timestamp);
    } else if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
      out.jobs.push_back(*job);
      out.last = std::max(out.last, kept.timestamp);
    }
  }
  return out;
}

void put_back_run(const Heard& heard, insights::RunLine& line) {
  line.phase = "started";
  line.outcome.clear();
  line.ended.reset();
  line.step.reset();
  if (!heard.jobs.empty()) line.attempt = 0;
  for (const core::JobEvent& job : heard.jobs) {
    const auto attempt = static_cast<std::int64_t>(job.run.attempt);
    if (attempt < line.attempt) continue;
    if (attempt > line.attempt) {
      line.phase = "started";
      line.outcome.clear();
      line.ended.reset();
    }
    line.attempt = attempt;
    line.world = job.world_size;
    if (job.step) line.step = job.step;
    if (job.phase != core::JobPhase::ended) continue;
    line.phase = "ended";
    line.outcome = job.outcome;
    line.ended = moment_micros_or_null(job.ended_at);
  }
  line.heard = heard.last / 1000;
}

// False: it had not been reported yet.
bool put_back_issue(const Heard& heard, insights::IssueLine& issue) {
  const auto began = heard.began.find(issue.event_id);
  if (began == heard.began.end()) return false;
  if (issue.closed && !heard.closed.contains({issue.key, *issue.closed})) {
    issue.closed.reset();
    issue.firing = true;
  }
  issue.severity = -1;
  issue.reports = 0;
  const auto all = heard.severities.find(issue.key);
  for (const auto& [stamp, severity] : all->second) {
    if (stamp < began->second) continue;
    issue.severity = std::max(issue.severity, severity);
    issue.heard = stamp / 1000;
    ++issue.reports;
  }
  return true;
}

}  // namespace

std::optional<core::WallTime> moment_of(const ApiCall& call) {
  const auto text = call.query.value("at");
  return text ? core::parse_rfc3339(*text) : std::nullopt;
}

ApiParameter moment_parameter() {
  return {"at", ParameterType::time, "as it was at that time, without what came later"};
}

core::Status check_moment(core::WallTime at, core::WallTime now) {
  if (at <= now) return core::ok();
  return core::invalid_argument("at: expected a time that has passed; now it is " +
                                core::to_rfc3339(now));
}

core::Status put_back(insights::RunLine& line, std::vector<insights::IssueLine>& issues,
                      std::vector<insights::KeptRecord>& events, core::WallTime at) {
  const std::int64_t until = core::nanoseconds(at);
  std::int64_t first = kNever;
  for (const insights::KeptRecord& kept : events) {
    const std::string& topic = kept.record.topic;
    if (topic == core::topic::kRegistry || topic == core::topic::kIssues)
      first = std::min(first, kept.timestamp);
  }
  if (first > until)
    return core::Error{core::Code::not_found,
                       "at: nothing was known of this run at " + core::to_rfc3339(at) +
                           (first == kNever ? ""
                                            : "; it was first heard of at " +
                                                  core::to_rfc3339(core::wall_time(first)))};
  std::erase_if(events, [&](const auto& kept) { return kept.timestamp > until; });
  const Heard heard = heard_until(events);
  std::erase_if(issues, [&](auto& issue) { return !put_back_issue(heard, issue); });
  put_back_run(heard, line);
  if (line.pin && line.pin->at > at) line.pin.reset();
  line.issues = static_cast<std::int64_t>(issues.size());
  line.open_issues = 0;
  line.worst = -1;
  for (const insights::IssueLine& one : issues) {
    line.worst = std::max(line.worst, one.severity);
    if (one.firing && one.attempt == line.attempt && line.phase != "ended") ++line.open_issues;
  }
  line.told = static_cast<std::int64_t>(heard.told.size());
  return core::ok();
}

std::optional<std::int64_t> step_at(insights::SeriesReader& curves, const std::string& run,
                                    core::WallTime at) {
  std::optional<std::int64_t> out;
  curves.all_families(
      run, insights::FamilyKind::clock, [&](std::int64_t, insights::FamilyLine&& family) {
        if (family.mode != core::Mode::train) return;
        const std::int64_t end =
            curves.x_at(family, insights::kTimeColumn, static_cast<double>(moment_micros(at)) + 1);
        if (end > family.x_first) out = std::max(out.value_or(0), end - 1);
      });
  return out;
}

}  // namespace tocsin::app
