// A broker in memory: partitions with offsets, transactions, consumer groups, leases, compaction
// and retention, and faults on demand. It passes the contract suite (tests/contract) like Kafka and
// the journal, and it is the ground on which the simulated world stands.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "ingest/transport.h"

namespace tocsin::simulation {

/// A record as it lies in a topic.
struct StoredRecord {
  core::OutRecord record;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};

struct BrokerOptions {
  ingest::TopicsConfig topics;  // topics exist as their plan says; others are not_found
  /// Given: nothing ever waits, and sessions, leases and transactions time out by it. Null: a poll
  /// waits in real time for records of another thread, and the wall time is moved by set_now().
  const core::Clock* clock = nullptr;
  bool markers = false;  // ends of transactions take an offset, as on Kafka
  bool eager = false;    // rebalances take everything away first, instead of what moves
  bool fences = true;    // false: a mistake to be found: commits of zombies go through
  /// Not 0: which partition a poll serves first and how much of it is decided by this seed.
  std::uint64_t seed = 0;
  /// Told of commits and assignments, for a readable log; under the broker's lock. May be empty.
  std::function<void(std::string_view client, const std::string& what)> say;
  core::Duration session = std::chrono::seconds(10);              // of group members
  core::Duration transaction_timeout = std::chrono::seconds(15);  // then it is aborted
};

/// What a client asks of the broker; each of them can be made to fail.
enum class Call { open, poll, commit, publish, write_ahead, flush, read_all, lease, ping };
std::string_view to_string(Call call) noexcept;

/// What becomes of one call.
struct Fault {
  enum class Kind {
    none,
    refused,  // `error`, and nothing was done
    lost,     // done, but the answer is `error`: commits and publishes only; what is written ahead
              // never arrives, and the next commit says so
    hangs,    // commits only: `error`; the transaction stays open and ends later, see `arrives`
    late,     // commits only: `error`; the whole request reaches the broker after `arrives`
    halfway,  // read_all only: `error` after some of the records
  };
  Kind kind = Kind::none;
  core::Error error = core::unavailable("the broker does not answer");
  /// After this time a hanging commit goes through if nobody aborted it; 0: it never does.
  core::Duration arrives{};
  bool dies = false;  // the client's process ends with this call, before it learns the answer
};

/// Asked before every call of every client; called under the broker's lock.
using FaultHook = std::function<Fault(std::string_view client, Call call)>;

/// Present sizes, to see that nothing grows without bound.
struct BrokerSizes {
  std::size_t open_transactions = 0;
  std::size_t members = 0;
};

/// Thread-safe. The broker itself is the transport of one process, "test".
class MemoryBroker final : public ingest::Transport {
 public:
  explicit MemoryBroker(BrokerOptions options);
  explicit MemoryBroker(const ingest::TopicsConfig& topics = one_partition());
  ~MemoryBroker() override;

  /// The default plan with one partition per topic: what most unit tests want.
  static ingest::TopicsConfig one_partition();

  core::Result<std::unique_ptr<core::RecordSource>> source(ingest::SourceOptions options) override;
  core::Result<std::unique_ptr<core::RecordPublisher>> publisher(
      ingest::PublisherOptions options) override;
  core::Result<std::unique_ptr<core::Lease>> lease(std::string_view name) override;
  core::Status ensure_topics() override;
  core::Result<std::vector<ingest::TopicState>> topic_states() override;
  core::Status ping(std::chrono::milliseconds timeout) override;
  core::Status apply_retention(core::WallTime now) override;
  [[nodiscard]] bool is_kafka() const override { return false; }
  [[nodiscard]] std::string describe() const override { return "memory"; }

  /// The transport of a further process; what it opens belongs to that process. Its destruction
  /// says nothing: see die().
  std::unique_ptr<ingest::Transport> connect(std::string client);
  /// The process is gone without a word: whatever its objects still do has no effect, its members,
  /// leases and transactions stay until they time out.
  void die(const ingest::Transport& client);
  [[nodiscard]] bool dead(const ingest::Transport& client) const;

  // ── Faults ───────────────────────────────────────────────────────────────────────────────────
  void on_call(FaultHook hook);
  /// The next `times` calls of that kind on any source or publisher fail with `error`; nothing of
  /// a failed commit becomes visible.
  void fail_next_commits(core::Error error, int times = 1);
  void fail_next_publishes(core::Error error, int times = 1);
  void fail_next_polls(core::Error error, int times = 1);
  void fail_next_flushes(core::Error error, int times = 1);
  void fail_pings(core::Error error);  // until heal()
  void heal();                         // forgets induced errors and the hook
  /// A rebalance without a reason: members see revoked() and then assigned() in their next polls.
  /// `lost`: they are thrown out of the group first and see lost(). `salt`, when not 0, deals the
  /// partitions out anew.
  void rebalance(std::string_view group, bool lost = false, std::uint64_t salt = 0);

  // ── What brokers do by themselves, on demand ─────────────────────────────────────────────────
  void set_now(core::WallTime now);
  /// Keeps the newest record of each key below `share` (0…1) of every partition of a compacted
  /// topic; tombstones there go too when `tombstones`.
  void compact(std::string_view topic, double share = 1, bool tombstones = false);
  /// Drops everything below `offset`, as retention does: readers behind it see data_loss.
  void trim(std::string_view topic, std::int32_t partition, std::int64_t offset);

  // ── What an outsider sees ────────────────────────────────────────────────────────────────────
  /// Appends as an outside producer would.
  void append(core::OutRecord record);
  /// Everything committed in a topic, partition by partition, oldest first, tombstones included.
  [[nodiscard]] std::vector<StoredRecord> records(std::string_view topic) const;
  /// Grows with every record of the topic: whether a look at records() is worth it.
  [[nodiscard]] std::int64_t end(std::string_view topic) const;
  /// Where the group stands; partitions that were never committed are absent.
  [[nodiscard]] std::vector<core::Position> committed(std::string_view group) const;
  /// Records a reader of the group has not passed yet, over the topics' partitions.
  [[nodiscard]] std::size_t lag(std::string_view group,
                                const std::vector<std::string>& topics) const;
  [[nodiscard]] BrokerSizes sizes() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
  std::unique_ptr<ingest::Transport> own_;
};

}  // namespace tocsin::simulation
