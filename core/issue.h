// Events of the `issues` topic: issues, job phases, rule statuses (docs/events.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/codes.h"
#include "core/identity.h"
#include "core/labels.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::core {

enum class IssueStatus { firing, resolved };
/// Why an issue is over. rule_removed, rule_changed: its rule no longer judges, or judges by other
/// parameters; nothing is known about the condition itself.
enum class Resolution {
  none,
  recovered,
  job_ended,
  superseded,
  expired,
  manual,
  rule_removed,
  rule_changed,
};
std::string_view to_string(IssueStatus status) noexcept;
std::string_view to_string(Resolution resolution) noexcept;

struct RunRef {
  RunUid uid;
  std::uint32_t attempt = 1;
  std::string job;
  std::string platform = "local";  // local, slurm, k8s-job, …
  Value ref;  // platform's own identity, e.g. {"pid":4711,"pid_start":…,"host":…}
};

struct NamedNumber {
  std::string name;
  double value = 0;
};

struct TensorRef {
  std::string name;
  std::string collection;
  Dtype dtype = Dtype::unknown;
  std::vector<std::int64_t> shape;
};

struct WindowRef {
  std::string clock = "step";  // step | time
  std::int64_t first = 0;      // steps, or UTC ns for the time clock
  std::int64_t last = 0;
  WallTime first_time{};
  WallTime last_time{};
  std::uint64_t points = 0;
  bool partial = false;
  std::vector<std::uint32_t> missing_ranks;
};

struct Parameter {
  std::string name;
  Value value;
  std::string origin = "default";  // default | user
};

struct Affected {
  std::uint64_t hit = 0;
  std::uint64_t evaluated = 0;
  std::vector<std::pair<std::string, double>> worst;  // unit → value, up to 10
};

/// Where the records that led here stand.
struct DataRef {
  std::string topic;
  std::int32_t partition = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

struct Evidence {
  NamedNumber observed;
  std::string op;
  std::optional<NamedNumber> threshold;
  std::optional<TensorRef> tensor;
  WindowRef window;
  std::vector<Parameter> parameters;
  WallTime first_seen{};
  std::uint64_t occurrences = 1;
  Affected affected;
  std::vector<DataRef> data_refs;
  ValueMap values;  // the rule's own
};

/// An issue that began before another one in their run, and fired when that one was reported.
struct Cause {
  std::string event_id;   // of its first report
  std::string issue_key;  // core::issue_key of its labels
  std::string rule;
  std::string unit;  // labels that its rule added: "tensor=loss"
  std::optional<Mode> mode;
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> global_step;
};

/// How an episode of an issue ended, beside `resolution` and `ends_at`. What was found stays in the
/// issue's own texts, evidence and step.
struct Ending {
  std::string summary;                      // one sentence, as the producer of the end says it
  std::string event_id;                     // of the resolve; empty: the router saw the end itself
  std::optional<std::int64_t> step;         // of the issue's mode, at the end
  std::optional<std::int64_t> global_step;  // over all modes
  friend bool operator==(const Ending&, const Ending&) = default;
};

/// One report of an issue: firing, firing again, or resolved.
struct Issue {
  std::string event_id;  // iss_…
  std::string source;    // /<cluster>/rules/<rule>
  std::uint64_t sequence = 0;
  WallTime time{};  // when the condition was seen (time of measurement)

  IssueStatus status = IssueStatus::firing;
  std::string rule;  // the YAML name, default the type
  std::string rule_type;
  std::string rule_version = "1";
  std::string params_hash;
  std::string kind;  // empty: the rule names none
  bool shadow = false;
  Severity severity = Severity::warning;
  Labels labels;
  std::string summary;
  std::string description;
  std::string recommendation;
  std::string runbook_url;
  std::vector<std::pair<std::string, std::string>> annotations;  // further ones, as they came
  std::string generator_url;                                     // of other producers
  std::string traceparent;                                       // W3C trace context, passed on
  std::string tracestate;
  WallTime starts_at{};
  std::optional<WallTime> ends_at;
  bool explicit_expiry = true;
  Resolution resolution = Resolution::none;
  /// Of a resolved issue. nullopt: it fires, or its producer gives the end in the texts above.
  std::optional<Ending> ending;
  RunRef run;
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> global_step;
  std::optional<Mode> mode;
  std::optional<std::int64_t> epoch;
  Evidence evidence;
  /// Earliest first, at most three; empty: a first sign. Part of no id, key or fingerprint.
  std::vector<Cause> caused_by;

  // Stage times, for the latency table: measured by the hook, appended to the topic.
  WallTime measured_at{};
  WallTime published_at{};
  WallTime evaluated_at{};
};

enum class JobPhase { started, heartbeat, ended };
std::string_view to_string(JobPhase phase) noexcept;

struct JobEvent {
  JobPhase phase = JobPhase::started;
  std::uint64_t number = 0;  // n-th event of this phase in this attempt
  RunRef run;
  Labels labels;
  std::uint32_t world_size = 0;
  std::vector<std::string> rules;
  WallTime time{};
  std::optional<WallTime> started_at;
  std::optional<WallTime> ended_at;
  /// completed | failed | stopped_by_rule | stopped_by_person | interrupted | unknown | lost
  std::string outcome;
  std::optional<int> exit_code;
  std::optional<std::int64_t> step;    // newest train step of the fastest worker
  std::optional<double> step_seconds;  // median of a train step
  /// node → "<boot id, 8 hex>/<opened>" of the newest worker that started there in this attempt.
  std::map<std::string, std::string> launch;
};

enum class RuleState { no_data, in_progress, issues_found, no_issues_found, error, stopped };
std::string_view to_string(RuleState state) noexcept;  // NoData, InProgress, IssuesFound, …

struct RuleStatusEvent {
  std::string rule;
  std::string rule_type;
  std::string rule_version = "1";
  RuleState status = RuleState::no_data;
  RuleState previous = RuleState::no_data;
  std::string reason;
  std::vector<std::string> missing;
  std::map<std::string, std::uint64_t> evaluations;  // outcome → count
  /// Of a rule that sums up a run, what it has to tell: by name a number, a text, or more of these.
  ValueMap summary;
  RunRef run;
  WallTime time{};
};

}  // namespace tocsin::core
