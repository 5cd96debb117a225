#include "app/loop/committer.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace tocsin::app {
namespace {

class InlineCommitter final : public Committer {
 public:
  InlineCommitter(std::unique_ptr<core::RecordPublisher> publisher, std::function<void()> finished)
      : publisher_(std::move(publisher)), finished_(std::move(finished)) {}

  void start(std::vector<core::OutRecord> records, std::vector<core::Position> positions) override {
    records_ = std::move(records);
    outcome_ = publisher_->commit(records_, positions);
    if (finished_) finished_();
  }
  bool write_ahead(const core::OutRecord& record) override {
    return publisher_->write_ahead(record);
  }
  std::optional<core::Status> poll() override { return std::exchange(outcome_, std::nullopt); }
  core::Status wait() override {
    const auto outcome = poll();
    return outcome ? *outcome : core::ok();
  }
  [[nodiscard]] bool busy() const override { return outcome_.has_value(); }
  std::vector<core::OutRecord> take_back() override { return std::exchange(records_, {}); }

 private:
  std::unique_ptr<core::RecordPublisher> publisher_;
  std::function<void()> finished_;
  std::vector<core::OutRecord> records_;
  std::optional<core::Status> outcome_;
};

class ThreadCommitter final : public Committer {
 public:
  ThreadCommitter(std::unique_ptr<core::RecordPublisher> publisher, std::function<void()> finished)
      : publisher_(std::move(publisher)),
        finished_(std::move(finished)),
        thread_([this](const std::stop_token& stop) { work(stop); }) {}

  void start(std::vector<core::OutRecord> records, std::vector<core::Position> positions) override {
    const std::lock_guard lock(mutex_);
    records_ = std::move(records);
    positions_ = std::move(positions);
    asked_ = busy_ = true;
    changed_.notify_all();
  }
  bool write_ahead(const core::OutRecord& record) override {
    return publisher_->write_ahead(record);
  }
  std::optional<core::Status> poll() override {
    const std::lock_guard lock(mutex_);
    if (outcome_) busy_ = false;
    return std::exchange(outcome_, std::nullopt);
  }
  core::Status wait() override {
    std::unique_lock lock(mutex_);
    if (!busy_) return core::ok();
    changed_.wait(lock, [this] { return outcome_.has_value(); });
    busy_ = false;
    return *std::exchange(outcome_, std::nullopt);
  }
  [[nodiscard]] bool busy() const override {
    const std::lock_guard lock(mutex_);
    return busy_;
  }
  std::vector<core::OutRecord> take_back() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(records_, {});
  }

 private:
  void work(const std::stop_token& stop) {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [this] { return asked_; })) return;
        asked_ = false;
      }
      // records_ and positions_ are nobody else's until the outcome is there.
      auto outcome = publisher_->commit(records_, positions_);
      {
        const std::lock_guard lock(mutex_);
        outcome_ = std::move(outcome);
        changed_.notify_all();
      }
      if (finished_) finished_();
    }
  }

  std::unique_ptr<core::RecordPublisher> publisher_;
  std::function<void()> finished_;
  mutable std::mutex mutex_;  // guards everything below, except while a commit is under way
  std::condition_variable_any changed_;
  std::vector<core::OutRecord> records_;
  std::vector<core::Position> positions_;
  std::optional<core::Status> outcome_;
  bool asked_ = false;
  bool busy_ = false;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace

CommitterFactory thread_committer() {
  return [](std::unique_ptr<core::RecordPublisher> publisher, std::function<void()> finished) {
    return std::unique_ptr<Committer>(
        std::make_unique<ThreadCommitter>(std::move(publisher), std::move(finished)));
  };
}

CommitterFactory inline_committer() {
  return [](std::unique_ptr<core::RecordPublisher> publisher, std::function<void()> finished) {
    return std::unique_ptr<Committer>(
        std::make_unique<InlineCommitter>(std::move(publisher), std::move(finished)));
  };
}

}  // namespace tocsin::app
