// Writing to the broker in memory, and leases on it.
#include <algorithm>
#include <map>
#include <set>

#include "tests/simulation/broker_state.h"

namespace tocsin::simulation {
namespace {

class Publisher final : public core::RecordPublisher {
 public:
  Publisher(std::shared_ptr<MemoryBroker::State> state, std::shared_ptr<Client> client,
            ingest::PublisherOptions options)
      : state_(std::move(state)), client_(std::move(client)), options_(std::move(options)) {}

  /// A new owner of a transactional id aborts what its predecessor left open, and fences it.
  core::Status open() {
    if (options_.transactional_id.empty()) return core::ok();
    const std::lock_guard lock(state_->mutex);
    if (auto fault = state_->fault(*client_, Call::open); fault.kind != Fault::Kind::none) {
      return fault.error;
    }
    auto& producer = state_->producers[options_.transactional_id];
    epoch_ = ++producer.epoch;
    if (producer.open != 0) state_->decide(producer.open, false);
    return core::ok();
  }

  core::Status publish(const core::OutRecord& record) override {
    const std::lock_guard lock(state_->mutex);
    const auto fault = state_->fault(*client_, Call::publish);
    if (fault.kind == Fault::Kind::refused) return fault.error;
    if (auto status = state_->check(record); !status) return status;
    state_->store(record, 0);
    if (fault.kind == Fault::Kind::lost) return fault.error;
    return core::ok();
  }

  core::Status flush(std::chrono::milliseconds) override {
    const std::lock_guard lock(state_->mutex);
    const auto fault = state_->fault(*client_, Call::flush);
    return fault.kind == Fault::Kind::none ? core::ok() : core::Status(fault.error);
  }

  core::Status commit(std::span<const core::OutRecord> records,
                      std::span<const core::Position> positions) override {
    const std::lock_guard lock(state_->mutex);
    const auto fault = state_->fault(*client_, Call::commit);
    if (fault.kind == Fault::Kind::refused) return fault.error;
    for (const auto& record : records) {
      if (auto status = state_->check(record); !status) return status;
    }
    if (options_.transactional_id.empty()) return commit_plainly(records, positions, fault);
    if (lost_ahead_) return *std::exchange(lost_ahead_, std::nullopt);
    if (options_.ahead && records.empty() && positions.empty()) return core::ok();
    if (state_->options.fences && epoch_ != state_->producers[options_.transactional_id].epoch) {
      return core::Error{
          core::Code::failed_precondition,
          "transactional id " + options_.transactional_id + " was taken over by a newer process"};
    }
    // What is durable already of a commit that has not succeeded as a whole is not written again.
    if (!begin_alike(records, settled_)) return must_repeat();
    records = records.subspan(settled_.size());
    if (in_doubt_ != 0 || late_) {
      if (auto status = settle(records); !status) return status;
      records = records.subspan(content_.size());
      std::move(content_.begin(), content_.end(), std::back_inserter(settled_));
      content_.clear();
      if (records.empty() &&
          std::equal(positions.begin(), positions.end(), positions_.begin(), positions_.end())) {
        settled_.clear();
        return core::ok();
      }
    }
    auto status = write(records, positions, fault);
    if (status) settled_.clear();
    return status;
  }

  bool write_ahead(const core::OutRecord& record) override {
    if (!options_.transactional_id.empty() && !options_.ahead) return false;
    const std::lock_guard lock(state_->mutex);
    const auto fault = state_->fault(*client_, Call::write_ahead);
    if (fault.kind == Fault::Kind::refused || !state_->check(record)) return false;
    if (fault.kind == Fault::Kind::none) {
      state_->store(record, 0);
    } else {
      lost_ahead_ = fault.error;
    }
    return true;
  }

  core::Result<std::int32_t> partitions(std::string_view topic) override {
    const std::lock_guard lock(state_->mutex);
    const auto it = state_->partitions.find(std::string(topic));
    if (it == state_->partitions.end()) {
      return core::not_found("topic " + std::string(topic) + " does not exist");
    }
    return it->second;
  }

 private:
  /// What became of the commit whose answer got lost; asked with the same records, or with more
  /// behind them.
  core::Status settle(std::span<const core::OutRecord> records) {
    if (!begin_alike(records, content_)) return must_repeat();
    if (late_) {
      const auto request = std::exchange(late_, nullptr);
      if (request->state == Request::State::committed) return core::ok();
      if (auto status = state_->admit(*request); !status) return status;
      if (request->state == Request::State::refused) return fenced();
      state_->decide(state_->begin(*request), true);
      request->state = Request::State::committed;
      return core::ok();
    }
    // Still open: the commit is said again, and goes through now.
    state_->decide(std::exchange(in_doubt_, 0), true);
    return core::ok();
  }

  static bool begin_alike(std::span<const core::OutRecord> records,
                          const std::vector<core::OutRecord>& content) {
    return records.size() >= content.size() &&
           std::equal(content.begin(), content.end(), records.begin(),
                      [](const auto& left, const auto& right) {
                        return left.topic == right.topic && left.key == right.key &&
                               left.value == right.value;
                      });
  }

  static core::Error must_repeat() {
    return core::internal_error(
        "the last commit has no answer yet: it must be repeated with the same records, or with "
        "more behind them");
  }

  static core::Error fenced() {
    return {core::Code::failed_precondition, "the commit came too late and was refused"};
  }

  core::Status write(std::span<const core::OutRecord> records,
                     std::span<const core::Position> positions, const Fault& fault) {
    const auto request = std::make_shared<Request>();
    request->transaction.transactional_id = options_.transactional_id;
    request->epoch = epoch_;
    request->records.assign(records.begin(), records.end());
    if (options_.source != nullptr) {
      const auto [group, member] = membership_of(*options_.source);
      std::copy_if(
          positions.begin(), positions.end(), std::back_inserter(request->transaction.positions),
          [&group = group](const core::Position& at) { return at.next >= 0 && !group.empty(); });
      request->transaction.group = group;
      request->member = member;
      request->generation = state_->groups[group].generation_of(member);
    }
    if (state_->options.say) say(records, request->transaction.positions, fault);
    if (fault.kind == Fault::Kind::late) {
      request->arrives = state_->steady() + fault.arrives;
      state_->late.push_back(request);
      late_ = request;
    } else {
      if (auto status = state_->admit(*request); !status) return status;
      const auto id = state_->begin(*request);
      if (fault.kind != Fault::Kind::hangs) {
        state_->decide(id, true);
        if (fault.kind == Fault::Kind::none) return core::ok();
      } else if (fault.arrives.count() != 0) {
        state_->transactions[id].arrives = state_->steady() + fault.arrives;
      }
      in_doubt_ = id;
    }
    content_.assign(records.begin(), records.end());
    positions_.assign(positions.begin(), positions.end());
    return fault.error;
  }

  void say(std::span<const core::OutRecord> records, const std::vector<core::Position>& positions,
           const Fault& fault) {
    std::map<std::string, int> topics;
    for (const auto& record : records) ++topics[record.topic];
    std::string what = "commits";
    for (const auto& [topic, count] : topics) what += " " + std::to_string(count) + " " + topic;
    for (const auto& position : positions) {
      what += " " + position.where.stream + "/" + std::to_string(position.where.partition) + "@" +
              std::to_string(position.next);
    }
    if (fault.kind == Fault::Kind::lost) what += ", the answer is lost";
    if (fault.kind == Fault::Kind::hangs) what += ", and hangs";
    if (fault.kind == Fault::Kind::late) what += ", on the way for " + core::to_text(fault.arrives);
    state_->options.say(client_->name, what);
  }

  /// At least once: the records, and only then the positions.
  core::Status commit_plainly(std::span<const core::OutRecord> records,
                              std::span<const core::Position> positions, const Fault& fault) {
    const bool halfway = fault.kind != Fault::Kind::none && state_->random() % 2 == 0;
    if (halfway || fault.kind == Fault::Kind::late) return write_some(records, fault);
    for (const auto& record : records) state_->store(record, 0);
    if (lost_ahead_) return *std::exchange(lost_ahead_, std::nullopt);
    if (fault.kind == Fault::Kind::hangs) return fault.error;
    if (options_.source != nullptr) {
      const auto [name, member] = membership_of(*options_.source);
      Group& group = state_->groups[name];
      if (!name.empty() && !positions.empty() && !group.may_commit(member)) {
        return core::Error{core::Code::failed_precondition, "no longer a member of the group"};
      }
      for (const auto& position : positions) {
        if (position.next >= 0) group.committed[position.where] = position.next;
      }
    }
    return fault.kind == Fault::Kind::none ? core::ok() : core::Status(fault.error);
  }

  /// Without a transaction each partition takes for itself what reaches it, in the order in which it
  /// was sent; what is late arrives whoever owns the partitions then: nothing fences it.
  core::Status write_some(std::span<const core::OutRecord> records, const Fault& fault) {
    const auto request = std::make_shared<Request>();
    std::set<core::StreamPartition> cut;
    for (const auto& record : records) {
      const core::StreamPartition where{record.topic, *state_->partition_of(record)};
      if (state_->random() % 4 == 0) cut.insert(where);
      if (!cut.contains(where)) {
        state_->store(record, 0);
      } else {
        request->records.push_back(record);
      }
    }
    if (fault.kind == Fault::Kind::late) {
      request->arrives = state_->steady() + fault.arrives;
      state_->late.push_back(request);
    }
    return fault.error;
  }

  std::shared_ptr<MemoryBroker::State> state_;
  std::shared_ptr<Client> client_;
  ingest::PublisherOptions options_;
  std::uint64_t epoch_ = 0;                // of the transactional id
  std::optional<core::Error> lost_ahead_;  // what the next commit says of a record before it
  // The commit whose answer got lost:
  std::uint64_t in_doubt_ = 0;
  std::shared_ptr<Request> late_;
  std::vector<core::OutRecord> content_;
  std::vector<core::Position> positions_;
  /// What is durable already of the present commit, which has not succeeded as a whole.
  std::vector<core::OutRecord> settled_;
};

/// Held for a whole session; its holder trusts two thirds of it.
class Lease final : public core::Lease {
 public:
  Lease(std::shared_ptr<MemoryBroker::State> state, std::shared_ptr<Client> client,
        std::string name)
      : state_(std::move(state)), client_(std::move(client)), name_(std::move(name)) {}
  ~Lease() override { give_up(); }

  core::Status step(core::Duration steady, std::chrono::milliseconds /*timeout*/) override {
    const std::lock_guard lock(state_->mutex);
    if (auto fault = state_->fault(*client_, Call::lease); fault.kind != Fault::Kind::none) {
      return fault.error;
    }
    valid_until_.reset();
    auto& held = state_->leases[name_];
    const bool theirs = held.holder != nullptr && held.holder != this && steady < held.until;
    if (theirs && state_->options.fences) return core::ok();
    held = {this, steady + kSession};
    valid_until_ = steady + kSession * 2 / 3;
    return core::ok();
  }
  [[nodiscard]] std::optional<core::Duration> valid_until() const override { return valid_until_; }
  void release() override { give_up(); }

 private:
  void give_up() {
    const std::lock_guard lock(state_->mutex);
    valid_until_.reset();
    auto& held = state_->leases[name_];
    // Nobody else has this address while it is held here; the dead keep it until its session ends.
    if (held.holder == this) {
      held.holder = client_->dead ? state_.get() : nullptr;
    }
  }

  std::shared_ptr<MemoryBroker::State> state_;
  std::shared_ptr<Client> client_;
  std::string name_;
  std::optional<core::Duration> valid_until_;
};

}  // namespace

core::Result<std::unique_ptr<core::RecordPublisher>> make_publisher(
    std::shared_ptr<MemoryBroker::State> state, std::shared_ptr<Client> client,
    ingest::PublisherOptions options) {
  auto made = std::make_unique<Publisher>(std::move(state), std::move(client), std::move(options));
  if (auto status = made->open(); !status) return status.error();
  return std::unique_ptr<core::RecordPublisher>(std::move(made));
}

std::unique_ptr<core::Lease> make_lease(std::shared_ptr<MemoryBroker::State> state,
                                        std::shared_ptr<Client> client, std::string name) {
  return std::make_unique<Lease>(std::move(state), std::move(client), std::move(name));
}

}  // namespace tocsin::simulation
