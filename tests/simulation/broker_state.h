// What the broker in memory knows, behind one lock; shared by everything it opened.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/broker.h"
#include "tests/simulation/broker_group.h"
#include "tests/simulation/broker_log.h"

namespace tocsin::simulation {

/// One process as the broker sees it.
struct Client {
  std::string name;
  bool dead = false;  // what it still does has no effect
};

/// A transaction that is not decided yet.
struct Transaction {
  std::string transactional_id;
  std::string group;
  std::vector<core::Position> positions;
  std::vector<core::StreamPartition> logs;  // written to
  core::Duration since{};
  std::optional<core::Duration> arrives;  // when its commit gets through by itself
};

/// A commit as it reaches the broker.
struct Request {
  Transaction transaction;
  std::uint64_t epoch = 0;       // of the transactional id, as the writer knows it
  std::uint64_t member = 0;      // of the group whose positions it takes
  std::uint64_t generation = 0;  // of that group, as the writer knew it when it was sent
  std::vector<core::OutRecord> records;
  enum class State { on_the_way, committed, refused } state = State::on_the_way;
  core::Duration arrives{};
};

struct MemoryBroker::State {
  struct Failures {
    core::Error error;
    int times = 0;
  };
  struct Producer {
    std::uint64_t epoch = 0;
    std::uint64_t open = 0;  // its undecided transaction
  };
  struct Held {
    const void* holder = nullptr;
    core::Duration until{};
  };

  explicit State(BrokerOptions given);

  // All of these are called under the lock.
  [[nodiscard]] core::Duration steady() const {
    return options.clock != nullptr ? options.clock->monotonic() : core::Duration{};
  }
  [[nodiscard]] bool waits() const { return options.clock == nullptr; }
  /// What becomes of a call; a dead client's calls are refused.
  Fault fault(Client& client, Call call);
  [[nodiscard]] core::Status check(const core::OutRecord& record) const;
  [[nodiscard]] core::Result<std::int32_t> partition_of(const core::OutRecord& record) const;
  void store(core::OutRecord record, std::uint64_t transaction);
  /// Sessions, transactions and hanging commits whose time has come.
  void advance();

  /// failed_precondition: the writer is fenced, or no member of the present generation.
  [[nodiscard]] core::Status admit(const Request& request);
  /// Opens the transaction and writes into it.
  std::uint64_t begin(const Request& request);
  void decide(std::uint64_t transaction, bool committed);

  BrokerOptions options;
  mutable std::mutex mutex;
  std::condition_variable appended;
  std::map<std::string, ingest::TopicSpec, std::less<>> topics;
  std::map<std::string, std::int32_t> partitions;  // of each topic
  std::map<core::StreamPartition, Log> logs;
  std::map<std::string, Group> groups;
  std::map<std::string, Producer> producers;  // by transactional id
  std::map<std::uint64_t, Transaction> transactions;
  std::vector<std::shared_ptr<Request>> late;  // on the way
  std::map<std::string, Held> leases;
  std::uint64_t last_transaction = 0;
  std::uint64_t last_member = 0;
  std::map<Call, Failures> failures;
  FaultHook hook;
  std::int64_t now = 0;
  std::mt19937_64 random;
};

std::unique_ptr<core::RecordSource> make_source(std::shared_ptr<MemoryBroker::State> state,
                                                std::shared_ptr<Client> client,
                                                ingest::SourceOptions options);
core::Result<std::unique_ptr<core::RecordPublisher>> make_publisher(
    std::shared_ptr<MemoryBroker::State> state, std::shared_ptr<Client> client,
    ingest::PublisherOptions options);
std::unique_ptr<core::Lease> make_lease(std::shared_ptr<MemoryBroker::State> state,
                                        std::shared_ptr<Client> client, std::string name);

/// Group and member of a source made by make_source(), for the commits of its publisher.
struct Membership {
  std::string group;
  std::uint64_t member = 0;
};
Membership membership_of(const core::RecordSource& source);

}  // namespace tocsin::simulation
