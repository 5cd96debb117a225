#include "tests/simulation/broker.h"

#include <utility>

#include "tests/simulation/broker_state.h"

namespace tocsin::simulation {

std::string_view to_string(Call call) noexcept {
  switch (call) {
    case Call::open:
      return "open";
    case Call::poll:
      return "poll";
    case Call::commit:
      return "commit";
    case Call::publish:
      return "publish";
    case Call::write_ahead:
      return "write_ahead";
    case Call::flush:
      return "flush";
    case Call::read_all:
      return "read_all";
    case Call::lease:
      return "lease";
    case Call::ping:
      return "ping";
  }
  return "";
}

namespace {

/// The transport of one process.
class Connection final : public ingest::Transport {
 public:
  Connection(std::shared_ptr<MemoryBroker::State> state, std::string client)
      : state_(std::move(state)), client_(std::make_shared<Client>()) {
    client_->name = std::move(client);
  }

  core::Result<std::unique_ptr<core::RecordSource>> source(ingest::SourceOptions options) override {
    return make_source(state_, client_, std::move(options));
  }
  core::Result<std::unique_ptr<core::RecordPublisher>> publisher(
      ingest::PublisherOptions options) override {
    return make_publisher(state_, client_, std::move(options));
  }
  core::Result<std::unique_ptr<core::Lease>> lease(std::string_view name) override {
    return make_lease(state_, client_, std::string(name));
  }
  core::Status ensure_topics() override { return ping({}); }
  core::Result<std::vector<ingest::TopicState>> topic_states() override {
    const std::lock_guard lock(state_->mutex);
    std::vector<ingest::TopicState> states;
    for (const auto& [name, topic] : state_->topics) states.push_back({topic, topic.partitions});
    return states;
  }
  core::Status ping(std::chrono::milliseconds) override {
    const std::lock_guard lock(state_->mutex);
    const auto fault = state_->fault(*client_, Call::ping);
    return fault.kind == Fault::Kind::none ? core::ok() : core::Status(fault.error);
  }
  core::Status apply_retention(core::WallTime) override { return core::ok(); }
  [[nodiscard]] bool is_kafka() const override { return true; }
  [[nodiscard]] std::string describe() const override { return "memory"; }

  void die() {
    const std::lock_guard lock(state_->mutex);
    client_->dead = true;
  }
  [[nodiscard]] bool dead() const {
    const std::lock_guard lock(state_->mutex);
    return client_->dead;
  }

 private:
  std::shared_ptr<MemoryBroker::State> state_;
  std::shared_ptr<Client> client_;
};

}  // namespace

ingest::TopicsConfig MemoryBroker::one_partition() {
  ingest::TopicsConfig cfg;
  cfg.partitions = 1;
  return cfg;
}

MemoryBroker::MemoryBroker(BrokerOptions options)
    : state_(std::make_shared<State>(std::move(options))), own_(connect("test")) {}
MemoryBroker::MemoryBroker(const ingest::TopicsConfig& topics)
    : MemoryBroker([&] {
        BrokerOptions options;
        options.topics = topics;
        return options;
      }()) {}
MemoryBroker::~MemoryBroker() = default;

core::Result<std::unique_ptr<core::RecordSource>> MemoryBroker::source(
    ingest::SourceOptions options) {
  return own_->source(std::move(options));
}
core::Result<std::unique_ptr<core::RecordPublisher>> MemoryBroker::publisher(
    ingest::PublisherOptions options) {
  return own_->publisher(std::move(options));
}
core::Result<std::unique_ptr<core::Lease>> MemoryBroker::lease(std::string_view name) {
  return own_->lease(name);
}
core::Status MemoryBroker::ensure_topics() { return core::ok(); }
core::Result<std::vector<ingest::TopicState>> MemoryBroker::topic_states() {
  return own_->topic_states();
}
core::Status MemoryBroker::ping(std::chrono::milliseconds timeout) { return own_->ping(timeout); }
core::Status MemoryBroker::apply_retention(core::WallTime now) {
  return own_->apply_retention(now);
}

std::unique_ptr<ingest::Transport> MemoryBroker::connect(std::string client) {
  return std::make_unique<Connection>(state_, std::move(client));
}

void MemoryBroker::die(const ingest::Transport& client) {
  if (const auto* ours = dynamic_cast<const Connection*>(&client)) {
    const_cast<Connection*>(ours)->die();  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }
}

bool MemoryBroker::dead(const ingest::Transport& client) const {
  const auto* ours = dynamic_cast<const Connection*>(&client);
  return ours != nullptr && ours->dead();
}

void MemoryBroker::on_call(FaultHook hook) {
  const std::lock_guard lock(state_->mutex);
  state_->hook = std::move(hook);
}
void MemoryBroker::fail_next_commits(core::Error error, int times) {
  const std::lock_guard lock(state_->mutex);
  state_->failures[Call::commit] = {std::move(error), times};
}
void MemoryBroker::fail_next_publishes(core::Error error, int times) {
  const std::lock_guard lock(state_->mutex);
  state_->failures[Call::publish] = {std::move(error), times};
}
void MemoryBroker::fail_next_polls(core::Error error, int times) {
  const std::lock_guard lock(state_->mutex);
  state_->failures[Call::poll] = {std::move(error), times};
}
void MemoryBroker::fail_next_flushes(core::Error error, int times) {
  const std::lock_guard lock(state_->mutex);
  state_->failures[Call::flush] = {std::move(error), times};
}
void MemoryBroker::fail_pings(core::Error error) {
  const std::lock_guard lock(state_->mutex);
  state_->failures[Call::ping] = {std::move(error), -1};
}
void MemoryBroker::heal() {
  const std::lock_guard lock(state_->mutex);
  state_->failures.clear();
  state_->hook = nullptr;
}

void MemoryBroker::rebalance(std::string_view group, bool lost, std::uint64_t salt) {
  const std::lock_guard lock(state_->mutex);
  Group& one = state_->groups[std::string(group)];
  lost ? one.throw_out_all() : one.rebalance(salt);
}

void MemoryBroker::set_now(core::WallTime now) {
  const std::lock_guard lock(state_->mutex);
  state_->now = core::nanoseconds(now);
}

void MemoryBroker::compact(std::string_view topic, double share, bool tombstones) {
  const std::lock_guard lock(state_->mutex);
  for (auto& [where, log] : state_->logs) {
    if (where.stream == topic) log.compact(share, tombstones);
  }
}

void MemoryBroker::trim(std::string_view topic, std::int32_t partition, std::int64_t offset) {
  const std::lock_guard lock(state_->mutex);
  state_->logs[{std::string(topic), partition}].trim(offset);
}

void MemoryBroker::append(core::OutRecord record) {
  const std::lock_guard lock(state_->mutex);
  if (state_->check(record)) state_->store(std::move(record), 0);
}

std::vector<StoredRecord> MemoryBroker::records(std::string_view topic) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<StoredRecord> all;
  for (const auto& [where, log] : state_->logs) {
    if (where.stream != topic) continue;
    log.read(0, [&](const StoredRecord& stored) {
      all.push_back(stored);
      return true;
    });
  }
  return all;
}

std::int64_t MemoryBroker::end(std::string_view topic) const {
  const std::lock_guard lock(state_->mutex);
  std::int64_t end = 0;
  for (const auto& [where, log] : state_->logs) {
    // What becomes readable counts, not what is written.
    if (where.stream == topic) end += log.stable();
  }
  return end;
}

std::vector<core::Position> MemoryBroker::committed(std::string_view group) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<core::Position> positions;
  const auto it = state_->groups.find(std::string(group));
  if (it == state_->groups.end()) return positions;
  for (const auto& [where, next] : it->second.committed) positions.push_back({where, next});
  return positions;
}

std::size_t MemoryBroker::lag(std::string_view group,
                              const std::vector<std::string>& topics) const {
  const std::lock_guard lock(state_->mutex);
  std::size_t count = 0;
  const auto it = state_->groups.find(std::string(group));
  for (const auto& [where, log] : state_->logs) {
    if (std::find(topics.begin(), topics.end(), where.stream) == topics.end()) continue;
    std::int64_t from = 0;
    if (it != state_->groups.end()) {
      const auto at = it->second.committed.find(where);
      if (at != it->second.committed.end()) from = at->second;
    }
    log.read(from, [&](const StoredRecord&) {
      ++count;
      return true;
    });
  }
  return count;
}

BrokerSizes MemoryBroker::sizes() const {
  const std::lock_guard lock(state_->mutex);
  BrokerSizes sizes;
  sizes.open_transactions = state_->transactions.size();
  for (const auto& [name, group] : state_->groups) sizes.members += group.size();
  return sizes;
}

}  // namespace tocsin::simulation
