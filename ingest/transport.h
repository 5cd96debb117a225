// Door of the transport half of ingest: opens sources and publishers on Kafka or on the journal
// (docs/transports.md), and knows the topics. Included by ingest/ingest.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
#include "core/lease.h"
#include "core/log.h"
#include "core/record_publisher.h"
#include "core/record_source.h"
#include "core/result.h"
#include "core/telemetry.h"
#include "core/time.h"
#include "core/topics.h"
#include "core/value.h"

namespace tocsin::ingest {

/// Section `topics`.
struct TopicsConfig {
  std::string prefix = "tocsin";
  int partitions = 24;  // of every keyed topic; never changed afterwards (it is part of the state)
  int replication = 1;
  bool create = true;  // ensure_topics() creates what is missing
  core::Duration telemetry_retention = std::chrono::hours{72};
  core::Duration metrics_retention = std::chrono::hours{24 * 7};
};
void read(config::Reader& in, TopicsConfig& cfg);

/// Section `transport`: exactly one of `kafka` and `journal`.
struct TransportConfig {
  /// librdkafka properties by their own names, `<property>_file` for secrets, and maps `consumer`
  /// and `producer` with overrides for one role. Null: the journal is used.
  core::Value kafka;
  std::string journal = "./tocsin-data";
  core::Duration journal_retention = std::chrono::hours{24 * 7};
  config::Bytes journal_max_bytes{10'000'000'000};
  config::Bytes journal_control_bytes{2ULL << 30U};
  std::string journal_fsync = "commit";  // "commit" or "never"
};
/// Also feeds the properties to a scratch librdkafka configuration, whose own words become errors.
void read(config::Reader& in, TransportConfig& cfg);

enum class Start {
  committed_or_beginning,  // where the group stands; never committed: the oldest record
  beginning,
  end,
};

struct SourceOptions {
  /// Empty: group-less, reads everything, stores no positions. On the journal a group has one
  /// source at a time: source() is failed_precondition while another process lives that has it.
  std::string group;
  std::vector<std::string> topics;  // short names
  /// May be null: then each partition is resumed at its committed position or by `start`.
  /// On the journal `assigned` is called once, in the first poll.
  core::AssignmentListener* listener = nullptr;
  std::optional<std::int32_t> partition;  // group-less: only this partition (the hook: commands)
  Start start = Start::committed_or_beginning;
  /// Kafka: how long a fetch that finds nothing waits at the broker (fetch.wait.max.ms). What comes
  /// is sent at once whatever it is; a short wait only bounds how late one partition's records are
  /// when others of the same broker have none.
  std::chrono::milliseconds fetch_wait{10};
  /// Journal: how late a record may be noticed while others write on and on, of whom none has written
  /// anything for this source for a while. Each look costs some 30 us.
  std::chrono::milliseconds patience{8};
};

struct PublisherOptions {
  std::string writer;  // Kafka: part of the client id
  /// Kafka: stable per engine thread. Empty: a plain idempotent producer, whose commit() is
  /// at-least-once (flush, then store the positions). Ignored by the journal.
  std::string transactional_id;
  /// Kafka, beside a transactional id: write_ahead() writes outside of the transactions. What it wrote
  /// may be there again after a crash; records and positions of commit() are still one unit, and fenced.
  bool ahead = false;
  /// Whose positions commit() takes; must outlive the publisher. Null: commit() takes none.
  core::RecordSource* source = nullptr;
  bool durable = false;  // journal: a commit is synced to the disk before it counts
  std::chrono::milliseconds linger{1};
  std::chrono::milliseconds commit_timeout{10'000};
  std::uint64_t max_queued_bytes = 64ULL << 20;
  std::uint32_t max_queued_records = 100'000;
};

/// One topic as it should be.
struct TopicSpec {
  std::string name;       // short: "issues"
  std::string full_name;  // "tocsin.issues.v1"
  std::int32_t partitions = 1;
  std::int32_t replication = 1;
  bool compacted = false;
  core::TopicOrigin origin = core::TopicOrigin::tocsin;
  /// Kafka's topic settings: cleanup.policy, retention.ms, max.message.bytes, …
  std::vector<std::pair<std::string, std::string>> settings;
};

/// All topics of core/topics.h as this configuration wants them.
std::vector<TopicSpec> topic_plan(const TopicsConfig& cfg);
/// The Markdown table of docs/transports.md, with the defaults.
std::string topic_table();
/// "tocsin.issues.v1" for "issues".
std::string full_topic_name(std::string_view prefix, std::string_view name);
/// The plan for other hands. format: strimzi | shell | terraform | text; invalid_argument else.
/// `bootstrap`: what the shell commands are told to connect to.
core::Result<std::string> export_topics(std::string_view format, const TopicsConfig& cfg,
                                        std::string_view bootstrap);

/// A topic as it should be beside what the cluster has.
struct TopicState {
  TopicSpec wanted;
  std::optional<std::int32_t> partitions;  // nullopt: missing
};

/// Where records come from and go to. Thread-safe; outlives every source and publisher it opened.
class Transport {
 public:
  /// Checks the settings and, for the journal, that the directory may be used. Does not wait for a
  /// broker: see ping(). Errors: invalid_argument (settings, in librdkafka's own words),
  /// failed_precondition (not a journal of this format), data_loss (damaged, with the command that
  /// salvages it). A journal of another machine or on a network file system can only be read.
  static core::Result<std::unique_ptr<Transport>> open(const TransportConfig& cfg,
                                                       const TopicsConfig& topics, core::Log& log,
                                                       core::Telemetry& telemetry);
  /// A journal to be looked at and left as it is: nothing is made in its folder, nobody's lease or
  /// position is touched, the machine and the file system do not matter. publisher() and lease() are
  /// failed_precondition. Needs only the file whose topics are read; unavailable: it is not there.
  static core::Result<std::unique_ptr<Transport>> open_recording(const std::string& directory,
                                                                 const TopicsConfig& topics,
                                                                 core::Log& log,
                                                                 core::Telemetry& telemetry);
  virtual ~Transport() = default;

  virtual core::Result<std::unique_ptr<core::RecordSource>> source(SourceOptions options) = 0;
  /// Errors: failed_precondition (journal: not ours to write).
  virtual core::Result<std::unique_ptr<core::RecordPublisher>> publisher(
      PublisherOptions options) = 0;

  /// The lease of this topic (core::topic::kRouterLease is the only one); opening it takes nothing yet.
  virtual core::Result<std::unique_ptr<core::Lease>> lease(std::string_view name) = 0;

  /// Creates missing topics when topics.create is set; else not_found, naming the topics and the
  /// command that creates them. On the journal there is nothing to create.
  virtual core::Status ensure_topics() = 0;
  /// Every topic of the plan and what exists. unavailable when the cluster does not answer.
  virtual core::Result<std::vector<TopicState>> topic_states() = 0;
  /// ok, or unavailable saying where nothing answered.
  virtual core::Status ping(std::chrono::milliseconds timeout) = 0;
  /// Topics of the user's, by their own names, that publishers opened from now on may write to: a record
  /// names one as "/name". invalid_argument: it is no name of a topic, or one of Tocsin's own;
  /// failed_precondition: the journal, which has none.
  virtual core::Status allow_topics(const std::vector<std::string>& names);
  /// Would such a topic take this record? Kafka is given it in a transaction that is taken back, so the
  /// answer holds for its existence, the permission and the size. Blocks at most 5 s.
  virtual core::Status try_record(const core::OutRecord& record);

  /// Journal: deletes records beyond their retention, checkpoints, gives space back; a little per
  /// call. Call it every second, from one thread. Kafka: does nothing.
  virtual core::Status apply_retention(core::WallTime now) = 0;

  /// Journal: what people should know of its space, one sentence; mostly nothing.
  [[nodiscard]] virtual std::string space_warning() const { return {}; }

  [[nodiscard]] virtual bool is_kafka() const = 0;
  /// For people: "journal ./tocsin-data" or "kafka host:9092".
  [[nodiscard]] virtual std::string describe() const = 0;
};

}  // namespace tocsin::ingest
