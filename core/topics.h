// Every topic, declared once: what lies in it, under which key, for how long, and who writes and
// reads it. Kafka's topics, the journal's tables, `tocsin topics` and the table of
// docs/transports.md follow this one. A topic stands here when something writes and reads it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/time.h"

namespace tocsin::core {

/// The short names; in full "<prefix>.<name>.v1". Nothing else spells them.
namespace topic {
inline constexpr const char* kTelemetry = "telemetry";
inline constexpr const char* kTensors = "tensors";
inline constexpr const char* kIssues = "issues";
inline constexpr const char* kCommands = "commands";
inline constexpr const char* kAcks = "acks";
inline constexpr const char* kRegistry = "registry";
inline constexpr const char* kRulesState = "rules-state";
inline constexpr const char* kComparisons = "comparisons";
inline constexpr const char* kRouterLease = "router-lease";
inline constexpr const char* kRouterState = "router-state";
inline constexpr const char* kRouterControl = "router-control";
inline constexpr const char* kRouterOutbox = "router-outbox";
inline constexpr const char* kRouterDeliveries = "router-deliveries";
inline constexpr const char* kRouterDeadletter = "router-deadletter";
inline constexpr const char* kMetrics = "metrics";
inline constexpr const char* kDlq = "dlq";
}  // namespace topic

/// `keyed`: as many partitions as `topics.partitions` says. `single`: one.
enum class TopicSpread : std::uint8_t { keyed, single };
/// What takes records away: age, a newer record of the same key, or both.
enum class TopicCleanup : std::uint8_t { age, compaction, both };
/// Whose hand writes it. `training`: processes of a job and collectors, many at once; the journal
/// keeps that in telemetry.db and leaves the disk to the kernel. `tocsin`: control.db, where a
/// commit is synced before it counts (`journal_fsync`).
enum class TopicOrigin : std::uint8_t { training, tocsin };

struct Topic {
  std::string_view name;
  TopicOrigin origin;
  TopicSpread spread;
  TopicCleanup cleanup;
  Duration age;              // at most so old, where the configuration does not say; 0: any age
  std::string_view key;      // of its records, for people
  std::string_view holds;    // for people
  std::string_view writers;  // for people; empty: nothing is written
  std::string_view readers;  // for people
};

/// All of them, in the order in which they are shown. The same span every time.
std::span<const Topic> topics() noexcept;

std::string_view to_string(TopicCleanup cleanup) noexcept;  // as Kafka's cleanup.policy says it

}  // namespace tocsin::core
