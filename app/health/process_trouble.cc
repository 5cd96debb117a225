#include "app/health/process_trouble.h"

#include <algorithm>

#include "core/identity.h"

namespace tocsin::app {
namespace {

constexpr core::Duration kAgain = std::chrono::minutes(1);

// A broker that elects a leader or a restart of a stage is over by itself.
core::Duration patience_of(ProcessIssue which) {
  return which == ProcessIssue::stage_stands_still ? core::Duration(std::chrono::seconds(10))
                                                   : core::Duration{};
}

core::Severity severity_of(ProcessIssue which) {
  return which == ProcessIssue::configuration_refused ? core::Severity::warning
                                                      : core::Severity::error;
}

const char* advice(ProcessIssue which) {
  switch (which) {
    case ProcessIssue::stage_stands_still:
      return "This stage does no work until then. The log has each failure, and `/-/ready` of the "
             "process reports it.";
    case ProcessIssue::configuration_refused:
      return "The previous configuration stays in effect. Fix the file: `tocsin check` prints the "
             "same errors.";
    case ProcessIssue::topic_missing:
      return "`tocsin topics apply` creates it. What lay in it is gone.";
    case ProcessIssue::topic_unsafe:
      return "`tocsin topics plan` shows each difference, `tocsin topics apply` sets what is safe "
             "to "
             "set.";
    case ProcessIssue::descriptors_exhausted:
      return "Raise the hard limit of open files of the process (LimitNOFILE=, ulimit -Hn), or "
             "find out who holds connections open.";
    case ProcessIssue::count:
      break;
  }
  return "";
}

}  // namespace

std::vector<core::Issue> ProcessTrouble::update(const std::vector<Trouble>& standing,
                                                core::WallTime now) {
  before_ = last_;
  std::vector<core::Issue> out;
  std::map<Key, Standing> next;
  for (const Trouble& one : standing) {
    const Key key{one.which, one.unit};
    const auto known = last_.find(key);
    Standing& here = next[key];
    if (known != last_.end()) {
      here = known->second;
    } else {
      here.since = now;
    }
    here.what = one.what;
    const bool due =
        here.is_told ? now - here.told >= kAgain : now - here.since >= patience_of(one.which);
    if (!due) continue;
    here.is_told = true;
    here.told = now;
    out.push_back(issue(key, here, core::IssueStatus::firing, now));
  }
  for (const auto& [key, one] : last_) {
    if (one.is_told && !next.contains(key)) {
      out.push_back(issue(key, one, core::IssueStatus::resolved, now));
    }
  }
  last_ = std::move(next);
  return out;
}

core::Issue ProcessTrouble::issue(const Key& key, const Standing& one, core::IssueStatus status,
                                  core::WallTime now) const {
  const auto& [which, unit] = key;
  const core::OwnIssue& own = own_issue(which);
  const std::string name(own.name);
  core::Issue out;
  out.source = "/" + cluster_ + "/rules/" + name;
  out.sequence = static_cast<std::uint64_t>(std::max<std::int64_t>(core::nanoseconds(now), 0));
  out.time = out.measured_at = out.evaluated_at = now;
  out.starts_at = one.since;
  out.status = status;
  out.rule = out.rule_type = name;
  out.severity = severity_of(which);
  out.labels.set("rule", name);
  out.labels.set("severity", core::to_string(out.severity));
  out.labels.set("cluster", cluster_);
  std::string labels;
  for (const std::string_view label : own.labels) {
    const std::string& value = label == "node" ? node_ : label == "role" ? role_ : unit;
    out.labels.set(std::string(label), value);
    labels += std::string(label) + "=" + value + '\x1e';
  }
  out.event_id =
      core::make_id("iss_", {name, labels, std::to_string(core::nanoseconds(one.since)),
                             std::to_string(core::nanoseconds(now)), core::to_string(status)});
  out.explicit_expiry = false;
  out.run.attempt = 0;  // it speaks of none, and so never stops any
  out.summary = one.what;
  out.recommendation = advice(which);
  if (status == core::IssueStatus::resolved) {
    out.ends_at = now;
    out.resolution = core::Resolution::recovered;
    out.summary = "Over: " + one.what;
  }
  out.evidence.first_seen = one.since;
  out.evidence.window.clock = "time";
  out.evidence.window.first = core::nanoseconds(one.since);
  out.evidence.window.last = core::nanoseconds(now);
  out.evidence.window.first_time = one.since;
  out.evidence.window.last_time = now;
  return out;
}

}  // namespace tocsin::app
