// Writing to the broker in memory, and leases on it.
#include <algorithm>

#include "tests/simulation/broker_state.h"

namespace tocsin::simulation {
namespace {

class Publisher final : public core::RecordPublisher {
 public:
  Publisher(std::shared_ptr<MemoryBroker::State> state, std::shared_ptr<const Client> client,
            ingest::PublisherOptions options)
      : state_(std::move(state)), client_(std::move(client)), options_(std::move(options)) {}

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
    if (auto status = register_id(); !status) return status;
    if (in_doubt_ != 0) {
      const auto done = settle(records);
      if (!done) return done.error();
      if (*done) records = records.subspan(content_.size());
      content_.clear();
      if (*done && records.empty() &&
          std::equal(positions.begin(), positions.end(), positions_.begin(), positions_.end())) {
        return core::ok();
      }
    }
    return write(records, positions, fault);
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
  /// The first commit of a new owner of the id aborts what its predecessor left open and fences it.
  core::Status register_id() {
    auto& producer = state_->producers[options_.transactional_id];
    if (epoch_ == 0) {
      epoch_ = ++producer.epoch;
      if (producer.open != 0) state_->decide(producer.open, false);
    }
    if (epoch_ != producer.epoch) {
      return core::Error{
          core::Code::failed_precondition,
          "transactional id " + options_.transactional_id + " was taken over by a newer process"};
    }
    return core::ok();
  }

  /// What became of the commit whose answer got lost: true when it went through.
  core::Result<bool> settle(std::span<const core::OutRecord> records) {
    const bool alike = records.size() >= content_.size() &&
                       std::equal(content_.begin(), content_.end(), records.begin(),
                                  [](const auto& left, const auto& right) {
                                    return left.topic == right.topic && left.key == right.key &&
                                           left.value == right.value;
                                  });
    if (!alike) {
      return core::internal_error(
          "the last commit has no answer yet: it must be repeated with the same records, or with "
          "more behind them");
    }
    // Still open: the commit is said again, and goes through now.
    state_->decide(std::exchange(in_doubt_, 0), true);
    return true;
  }

  core::Status write(std::span<const core::OutRecord> records,
                     std::span<const core::Position> positions, const Fault& fault) {
    Transaction transaction;
    transaction.transactional_id = options_.transactional_id;
    if (options_.source != nullptr) {
      const auto [group, member] = membership_of(*options_.source);
      std::copy_if(positions.begin(), positions.end(), std::back_inserter(transaction.positions),
                   [&](const core::Position& at) { return at.next >= 0 && !group.empty(); });
      transaction.group = group;
      if (!transaction.positions.empty() && !state_->groups[group].may_commit(member)) {
        return core::Error{core::Code::failed_precondition,
                           "no longer a member of the group's present generation"};
      }
    }
    const auto id = state_->begin(std::move(transaction), records);
    if (fault.kind == Fault::Kind::hangs) {
      if (fault.arrives.count() != 0) {
        state_->transactions[id].arrives = state_->steady() + fault.arrives;
      }
    } else {
      state_->decide(id, true);
      if (fault.kind == Fault::Kind::none) return core::ok();
    }
    in_doubt_ = id;
    content_.assign(records.begin(), records.end());
    positions_.assign(positions.begin(), positions.end());
    return fault.error;
  }

  /// At least once: the records, and only then the positions.
  core::Status commit_plainly(std::span<const core::OutRecord> records,
                              std::span<const core::Position> positions, const Fault& fault) {
    for (const auto& record : records) state_->store(record, 0);
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

  std::shared_ptr<MemoryBroker::State> state_;
  std::shared_ptr<const Client> client_;
  ingest::PublisherOptions options_;
  std::uint64_t epoch_ = 0;     // 0: not registered yet
  std::uint64_t in_doubt_ = 0;  // the transaction whose answer got lost
  std::vector<core::OutRecord> content_;
  std::vector<core::Position> positions_;
};

/// Held for a whole session; its holder trusts two thirds of it.
class Lease final : public core::Lease {
 public:
  Lease(std::shared_ptr<MemoryBroker::State> state, std::shared_ptr<const Client> client,
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
    if (held.holder != nullptr && held.holder != this && steady < held.until) return core::ok();
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
  std::shared_ptr<const Client> client_;
  std::string name_;
  std::optional<core::Duration> valid_until_;
};

}  // namespace

std::unique_ptr<core::RecordPublisher> make_publisher(std::shared_ptr<MemoryBroker::State> state,
                                                      std::shared_ptr<const Client> client,
                                                      ingest::PublisherOptions options) {
  return std::make_unique<Publisher>(std::move(state), std::move(client), std::move(options));
}

std::unique_ptr<core::Lease> make_lease(std::shared_ptr<MemoryBroker::State> state,
                                        std::shared_ptr<const Client> client, std::string name) {
  return std::make_unique<Lease>(std::move(state), std::move(client), std::move(name));
}

}  // namespace tocsin::simulation
