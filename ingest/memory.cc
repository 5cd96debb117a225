#include "ingest/memory.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "core/identity.h"

namespace tocsin::ingest {

namespace {

struct Log {
  std::int64_t first = 0;  // offset of records.front()
  std::deque<StoredRecord> records;
  [[nodiscard]] std::int64_t end() const {
    return first + static_cast<std::int64_t>(records.size());
  }
};

struct Failures {
  core::Error error;
  int times = 0;
};

struct Rebalance {
  bool lost = false;
};

}  // namespace

struct MemoryBroker::State {
  std::mutex mutex;  // guards all below
  std::condition_variable appended;
  std::map<std::string, TopicSpec, std::less<>> topics;
  std::map<core::StreamPartition, Log> logs;
  std::map<std::string, std::map<core::StreamPartition, std::int64_t>> committed;
  std::map<std::string, Rebalance> rebalances;
  struct Held {
    const void* holder = nullptr;
    core::Duration until{};
  };
  std::map<std::string, Held> leases;
  Failures commits, publishes, polls, flushes, pings;
  std::int64_t now = 0;

  static std::optional<core::Error> fail(Failures& failures) {
    if (failures.times == 0) return std::nullopt;
    if (failures.times > 0) --failures.times;
    return failures.error;
  }

  core::Result<std::int32_t> partition_of(const core::OutRecord& record) const {
    const auto topic = topics.find(record.topic);
    if (topic == topics.end()) return core::not_found("topic " + record.topic + " does not exist");
    if (record.partition) return *record.partition;
    const std::string& key = record.partition_key.empty() ? record.key : record.partition_key;
    return core::partition_for(key, topic->second.partitions);
  }

  core::Status check(const core::OutRecord& record) const {
    const auto partition = partition_of(record);
    if (!partition) return partition.error();
    const auto count = topics.find(record.topic)->second.partitions;
    if (*partition < 0 || *partition >= count) {
      return core::invalid_argument("topic " + record.topic + " has no partition " +
                                    std::to_string(*partition));
    }
    return core::ok();
  }

  void store(core::OutRecord record) {
    const std::int32_t partition = *partition_of(record);
    if (record.timestamp == 0) record.timestamp = now;
    Log& log = logs[{record.topic, partition}];
    const std::int64_t offset = log.end();
    log.records.push_back({std::move(record), partition, offset});
    appended.notify_all();
  }
};

namespace {

std::optional<std::string_view> header_of(const void* native, std::string_view name) {
  const auto& headers = static_cast<const core::OutRecord*>(native)->headers;
  const auto it = std::find_if(headers.begin(), headers.end(),
                               [&](const auto& header) { return header.first == name; });
  return it == headers.end() ? std::nullopt : std::optional<std::string_view>(it->second);
}

core::RecordView view_of(const StoredRecord& stored) {
  core::RecordView view;
  view.topic = stored.record.topic;
  view.stream = stored.record.topic;
  view.partition = stored.partition;
  view.offset = stored.offset;
  view.timestamp = stored.record.timestamp;
  if (!stored.record.key.empty()) view.key = stored.record.key;
  view.tombstone = !stored.record.value.has_value();
  if (stored.record.value) {
    view.value = std::as_bytes(std::span(stored.record.value->data(), stored.record.value->size()));
  }
  view.native = &stored.record;
  view.find_header = header_of;
  return view;
}

class MemorySource final : public core::RecordSource {
 public:
  MemorySource(std::shared_ptr<MemoryBroker::State> state, SourceOptions options)
      : state_(std::move(state)), options_(std::move(options)) {}

  core::Result<std::size_t> poll(std::chrono::milliseconds timeout, std::size_t max_records,
                                 core::RecordHandler handler) override {
    if (closed_) return core::Error{core::Code::failed_precondition, "the source is closed"};
    {
      std::unique_lock lock(state_->mutex);
      if (auto error = MemoryBroker::State::fail(state_->polls)) return *error;
    }
    assign_if_due();
    std::vector<StoredRecord> taken;  // copied: the handler may publish, which takes the lock
    {
      std::unique_lock lock(state_->mutex);
      auto gap = take(taken, max_records);
      if (!gap && taken.empty() && max_records > 0 && timeout.count() > 0) {
        state_->appended.wait_for(lock, timeout, [&] {
          gap = take(taken, max_records);
          return gap || !taken.empty();
        });
      }
      if (gap) return core::Error{core::Code::data_loss, std::move(*gap)};
    }
    std::size_t count = 0;
    for (const auto& record : taken) {
      const core::StreamPartition where{record.record.topic, record.partition};
      if (paused_.contains(where)) continue;  // the handler paused it: handed out after resume()
      next_[where] = record.offset + 1;
      handler(view_of(record));
      ++count;
    }
    return count;
  }

  core::Status seek(const core::Position& position) override {
    const auto it = next_.find(position.where);
    if (it == next_.end()) return core::not_found(position.where.stream + " is not assigned");
    const std::lock_guard lock(state_->mutex);
    it->second = position.next < 0 ? state_->logs[position.where].first : position.next;
    return core::ok();
  }
  core::Status pause(std::span<const core::StreamPartition> partitions) override {
    for (const auto& partition : partitions) {
      if (next_.contains(partition)) paused_.insert(partition);
    }
    return core::ok();
  }
  core::Status resume(std::span<const core::StreamPartition> partitions) override {
    for (const auto& partition : partitions) paused_.erase(partition);
    return core::ok();
  }
  [[nodiscard]] std::vector<core::Position> positions() const override {
    std::vector<core::Position> positions;
    for (const auto& [where, next] : next_) positions.push_back({where, next});
    return positions;
  }
  [[nodiscard]] bool at_end() const override {
    const std::lock_guard lock(state_->mutex);
    return assigned_ && std::all_of(next_.begin(), next_.end(), [this](const auto& entry) {
             return entry.second >= state_->logs[entry.first].end();
           });
  }
  [[nodiscard]] bool at_end(const core::StreamPartition& where) const override {
    const std::lock_guard lock(state_->mutex);
    const auto found = next_.find(where);
    return found != next_.end() && found->second >= state_->logs[where].end();
  }
  void wake() override {}
  core::Status read_all(std::string_view topic, std::int32_t partition,
                        core::RecordHandler handler) override {
    std::vector<StoredRecord> newest;
    {
      const std::lock_guard lock(state_->mutex);
      const auto& records = state_->logs[{std::string(topic), partition}].records;
      std::set<std::string_view> seen;
      for (auto it = records.rbegin(); it != records.rend(); ++it) {
        if (seen.insert(it->record.key).second) newest.push_back(*it);
      }
    }
    for (auto it = newest.rbegin(); it != newest.rend(); ++it) handler(view_of(*it));
    return core::ok();
  }
  void close(std::chrono::milliseconds) override { closed_ = true; }

  [[nodiscard]] const std::string& group() const { return options_.group; }

 private:
  void assign_if_due() {
    std::vector<core::StreamPartition> left;
    std::vector<core::Position> positions;
    std::optional<Rebalance> rebalance;
    {
      const std::lock_guard lock(state_->mutex);
      const auto due = state_->rebalances.find(options_.group);
      if (assigned_ && due != state_->rebalances.end()) {
        rebalance = due->second;
        for (const auto& [where, next] : next_) left.push_back(where);
      }
      state_->rebalances.erase(options_.group);
    }
    if (rebalance && options_.listener != nullptr) {
      rebalance->lost ? options_.listener->lost(left) : options_.listener->revoked(left);
    }
    if (assigned_ && !rebalance) return;
    {
      const std::lock_guard lock(state_->mutex);
      positions = start_positions();
    }
    assigned_ = true;
    if (options_.listener != nullptr) options_.listener->assigned(positions);
  }

  std::vector<core::Position> start_positions() {
    std::vector<core::Position> positions;
    next_.clear();
    paused_.clear();
    for (const auto& name : options_.topics) {
      const auto topic = state_->topics.find(name);
      if (topic == state_->topics.end()) continue;
      for (std::int32_t p = 0; p < topic->second.partitions; ++p) {
        if (options_.partition && *options_.partition != p) continue;
        const core::StreamPartition where{name, p};
        const Log& log = state_->logs[where];
        std::int64_t committed = -1;
        if (!options_.group.empty() && options_.start == Start::committed_or_beginning) {
          const auto& group = state_->committed[options_.group];
          if (const auto it = group.find(where); it != group.end()) committed = it->second;
        }
        next_[where] = committed >= 0                 ? committed
                       : options_.start == Start::end ? log.end()
                                                      : log.first;
        if (options_.listener != nullptr) paused_.insert(where);
        positions.push_back({where, committed});
      }
    }
    return positions;
  }

  /// Copies what is due; the description of a gap instead, if there is one.
  std::optional<std::string> take(std::vector<StoredRecord>& taken, std::size_t max_records) {
    for (auto& [where, next] : next_) {
      if (paused_.contains(where)) continue;
      const Log& log = state_->logs[where];
      if (next < log.first) {
        std::string gap = "records " + std::to_string(next) + " to " +
                          std::to_string(log.first - 1) + " of " + where.stream + "[" +
                          std::to_string(where.partition) + "] are gone";
        next = log.first;
        return gap;
      }
      for (auto at = static_cast<std::size_t>(next - log.first);
           at < log.records.size() && taken.size() < max_records; ++at) {
        taken.push_back(log.records[at]);
      }
    }
    return std::nullopt;
  }

  std::shared_ptr<MemoryBroker::State> state_;
  SourceOptions options_;
  std::map<core::StreamPartition, std::int64_t> next_;
  std::set<core::StreamPartition> paused_;
  bool assigned_ = false;
  bool closed_ = false;
};

class MemoryPublisher final : public core::RecordPublisher {
 public:
  MemoryPublisher(std::shared_ptr<MemoryBroker::State> state, std::string group)
      : state_(std::move(state)), group_(std::move(group)) {}

  core::Status publish(const core::OutRecord& record) override {
    const std::lock_guard lock(state_->mutex);
    if (auto error = MemoryBroker::State::fail(state_->publishes)) return *error;
    if (auto status = state_->check(record); !status) return status;
    state_->store(record);
    return core::ok();
  }
  core::Status flush(std::chrono::milliseconds) override {
    const std::lock_guard lock(state_->mutex);
    if (auto error = MemoryBroker::State::fail(state_->flushes)) return *error;
    return core::ok();
  }
  core::Status commit(std::span<const core::OutRecord> records,
                      std::span<const core::Position> positions) override {
    const std::lock_guard lock(state_->mutex);
    if (auto error = MemoryBroker::State::fail(state_->commits)) return *error;
    for (const auto& record : records) {
      if (auto status = state_->check(record); !status) return status;
    }
    for (const auto& record : records) state_->store(record);
    for (const auto& position : positions) {
      if (position.next >= 0) state_->committed[group_][position.where] = position.next;
    }
    return core::ok();
  }
  core::Result<std::int32_t> partitions(std::string_view topic) override {
    const std::lock_guard lock(state_->mutex);
    const auto it = state_->topics.find(topic);
    if (it == state_->topics.end()) {
      return core::not_found("topic " + std::string(topic) + " does not exist");
    }
    return it->second.partitions;
  }

 private:
  std::shared_ptr<MemoryBroker::State> state_;
  std::string group_;
};

/// Held for a whole session; its holder trusts two thirds of it.
class MemoryLease final : public core::Lease {
 public:
  MemoryLease(std::shared_ptr<MemoryBroker::State> state, std::string name)
      : state_(std::move(state)), name_(std::move(name)) {}
  ~MemoryLease() override { release(); }

  core::Status step(core::Duration steady, std::chrono::milliseconds /*timeout*/) override {
    const std::lock_guard lock(state_->mutex);
    auto& held = state_->leases[name_];
    valid_until_.reset();
    if (held.holder != nullptr && held.holder != this && steady < held.until) return core::ok();
    held = {this, steady + kSession};
    valid_until_ = steady + kSession * 2 / 3;
    return core::ok();
  }
  [[nodiscard]] std::optional<core::Duration> valid_until() const override { return valid_until_; }
  void release() override {
    const std::lock_guard lock(state_->mutex);
    valid_until_.reset();
    auto& held = state_->leases[name_];
    if (held.holder == this) held = {};
  }

 private:
  std::shared_ptr<MemoryBroker::State> state_;
  std::string name_;
  std::optional<core::Duration> valid_until_;
};

}  // namespace

TopicsConfig MemoryBroker::one_partition() {
  TopicsConfig cfg;
  cfg.partitions = 1;
  return cfg;
}

MemoryBroker::MemoryBroker(const TopicsConfig& topics) : state_(std::make_shared<State>()) {
  for (auto& topic : topic_plan(topics)) state_->topics.emplace(topic.name, topic);
}
MemoryBroker::~MemoryBroker() = default;

core::Result<std::unique_ptr<core::RecordSource>> MemoryBroker::source(SourceOptions options) {
  return std::unique_ptr<core::RecordSource>(
      std::make_unique<MemorySource>(state_, std::move(options)));
}

core::Result<std::unique_ptr<core::RecordPublisher>> MemoryBroker::publisher(
    PublisherOptions options) {
  std::string group;
  if (const auto* source = dynamic_cast<const MemorySource*>(options.source)) {
    group = source->group();
  }
  return std::unique_ptr<core::RecordPublisher>(
      std::make_unique<MemoryPublisher>(state_, std::move(group)));
}

core::Result<std::unique_ptr<core::Lease>> MemoryBroker::lease(std::string_view name) {
  return std::unique_ptr<core::Lease>(std::make_unique<MemoryLease>(state_, std::string(name)));
}

core::Status MemoryBroker::ensure_topics() { return core::ok(); }

core::Result<std::vector<TopicState>> MemoryBroker::topic_states() {
  const std::lock_guard lock(state_->mutex);
  std::vector<TopicState> states;
  for (const auto& [name, topic] : state_->topics) states.push_back({topic, topic.partitions});
  return states;
}

core::Status MemoryBroker::ping(std::chrono::milliseconds) {
  const std::lock_guard lock(state_->mutex);
  if (auto error = State::fail(state_->pings)) return *error;
  return core::ok();
}

core::Status MemoryBroker::apply_retention(core::WallTime) { return core::ok(); }

void MemoryBroker::set_now(core::WallTime now) {
  const std::lock_guard lock(state_->mutex);
  state_->now = core::nanoseconds(now);
}

void MemoryBroker::fail_next_commits(core::Error error, int times) {
  const std::lock_guard lock(state_->mutex);
  state_->commits = {std::move(error), times};
}
void MemoryBroker::fail_next_publishes(core::Error error, int times) {
  const std::lock_guard lock(state_->mutex);
  state_->publishes = {std::move(error), times};
}
void MemoryBroker::fail_next_polls(core::Error error, int times) {
  const std::lock_guard lock(state_->mutex);
  state_->polls = {std::move(error), times};
}
void MemoryBroker::fail_next_flushes(core::Error error, int times) {
  const std::lock_guard lock(state_->mutex);
  state_->flushes = {std::move(error), times};
}
void MemoryBroker::fail_pings(core::Error error) {
  const std::lock_guard lock(state_->mutex);
  state_->pings = {std::move(error), -1};
}
void MemoryBroker::heal() {
  const std::lock_guard lock(state_->mutex);
  state_->commits = state_->publishes = state_->polls = state_->flushes = state_->pings = {};
}

std::vector<StoredRecord> MemoryBroker::records(std::string_view topic) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<StoredRecord> all;
  for (const auto& [where, log] : state_->logs) {
    if (where.stream == topic) all.insert(all.end(), log.records.begin(), log.records.end());
  }
  return all;
}

void MemoryBroker::append(core::OutRecord record) {
  const std::lock_guard lock(state_->mutex);
  if (state_->check(record)) state_->store(std::move(record));
}

void MemoryBroker::trim(std::string_view topic, std::int32_t partition, std::int64_t offset) {
  const std::lock_guard lock(state_->mutex);
  Log& log = state_->logs[{std::string(topic), partition}];
  while (!log.records.empty() && log.first < offset) {
    log.records.pop_front();
    ++log.first;
  }
}

std::vector<core::Position> MemoryBroker::committed(std::string_view group) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<core::Position> positions;
  const auto it = state_->committed.find(std::string(group));
  if (it == state_->committed.end()) return positions;
  for (const auto& [where, next] : it->second) positions.push_back({where, next});
  return positions;
}

void MemoryBroker::rebalance(std::string_view group, bool lost) {
  const std::lock_guard lock(state_->mutex);
  state_->rebalances[std::string(group)] = {lost};
}

}  // namespace tocsin::ingest
