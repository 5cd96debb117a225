#include "core/topics.h"

#include <chrono>

#include "core/audit_topic.h"

namespace tocsin::core {
namespace {

using enum TopicOrigin;
using enum TopicSpread;
using enum TopicCleanup;

constexpr Duration of_hours(int count) { return std::chrono::hours{count}; }
constexpr Duration of_days(int count) { return of_hours(24 * count); }

constexpr Topic kTopics[] = {
    {topic::kTelemetry, training, keyed, age, of_days(3), "run uid, with the shard of a large job",
     "frames and JSON records: statistics, scalars, steps, lifecycle, system samples",
     "hook, `collect`, `tocsin run`, other producers", "`evaluate`"},
    {topic::kTensors, training, keyed, age, of_hours(6), "run uid",
     "raw tensors in chunks, on request only, or where they lie", "hook",
     "the Python package: `hook.get_tensors()`, trials, rules in Python"},
    {topic::kIssues, tocsin, keyed, age, of_days(30), "run uid",
     "events: issues, jobs, status of rules", "`evaluate`, `tocsin stop`, the HTTP API",
     "`route`, `status`, `tail`"},
    {topic::kCommands, tocsin, keyed, both, of_days(7), "run uid and slot",
     "what a run is to do: stop, capture; what a node's agent is to sample",
     "`stop_training`, `evaluate`, `runs`, `tocsin stop`, `tocsin capture`, `tocsin agent`, the "
     "HTTP API",
     "hook, `collect`, `stops`, `runs`, `status`, `tail`"},
    {topic::kAcks, training, keyed, age, of_days(30), "run uid",
     "answers to commands, rungs of platforms", "hook, `collect`, `platform-stops`",
     "`stops`, `platform-stops`, `status`, `tail`"},
    {topic::kRegistry,
     tocsin,
     keyed,
     compaction,
     {},
     "run uid",
     "the present launch of each run: who, where, how to be ended",
     "`evaluate`",
     "`collect`, `runs`, `stops`, `status`, `evaluate` for runs of several shards"},
    {topic::kRulesState,
     tocsin,
     keyed,
     compaction,
     {},
     "run and piece",
     "snapshots of the engine's state",
     "`evaluate`",
     "`evaluate`"},
    {topic::kComparisons, tocsin, single, both, of_days(30), "run, rule and step",
     "what rules that compare runs keep of the run that others are compared with, and of those "
     "that completed",
     "`evaluate`", "`evaluate`"},
    {topic::kRouterLease, tocsin, single, age, of_days(1), "",
     "nothing: who is assigned its partition routes and delivers", "", "`route`, `deliver`"},
    {topic::kRouterState,
     tocsin,
     keyed,
     compaction,
     {},
     "record of state",
     "open issues, groups, what was told",
     "`route`",
     "`route`"},
    {topic::kRouterControl,
     tocsin,
     single,
     compaction,
     {},
     "kind and name",
     "what people ask of the router: silences, acknowledgements, words on stops, switches of "
     "integrations, verdicts and notes on issues",
     "`tocsin silence`, `tocsin ack`, `tocsin stops`, `tocsin endpoint`, `tocsin breaker`, `tocsin "
     "verdict`, "
     "`tocsin note`, "
     "`stop_training`, `route`, `runs`, the HTTP API",
     "`route`, `deliver`, `runs`, `status`"},
    {topic::kRouterOutbox, tocsin, keyed, age, of_days(14), "integration",
     "notifications to deliver", "`route`, `tocsin dlq replay`", "`deliver`, `tocsin history`"},
    {topic::kRouterDeliveries, tocsin, keyed, age, of_days(90), "notification",
     "each attempt and each end of a delivery", "`deliver`",
     "`route`, `deliver`, `status`, `tocsin history`"},
    {topic::kRouterDeadletter, tocsin, keyed, age, of_days(90), "integration",
     "notifications that were given up, and what people did about them", "`deliver`, `tocsin dlq`",
     "`tocsin dlq`"},
    {topic::kRouterAudit, tocsin, single, age, of_days(365), "what was changed",
     "who changed what, from where, with the state before and after",
     "`tocsin silence`, the HTTP API", "the HTTP API"},
    {topic::kMetrics, tocsin, keyed, age, of_days(7), "run uid", "state of issues as JSON scalars",
     "`publish_metric`", "other programs"},
    {topic::kDlq, tocsin, keyed, age, of_days(14), "topic and partition it came from",
     "records that cannot be read, with code and original bytes", "every role, `tocsin dlq`",
     "`status`, `tocsin dlq`"},
};

}  // namespace

std::span<const Topic> topics() noexcept { return kTopics; }

std::string_view to_string(TopicCleanup cleanup) noexcept {
  switch (cleanup) {
    case TopicCleanup::age:
      return "delete";
    case TopicCleanup::compaction:
      return "compact";
    case TopicCleanup::both:
      return "compact,delete";
  }
  return "delete";
}

}  // namespace tocsin::core
