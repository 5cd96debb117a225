#include "app/loop/committer.h"

#include <thread>
#include <utility>

#include "core/mutex.h"

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
    const core::MutexLock lock(mutex_);
    records_ = std::move(records);
    positions_ = std::move(positions);
    asked_ = busy_ = true;
    changed_.notify_all();
  }
  bool write_ahead(const core::OutRecord& record) override {
    return publisher_->write_ahead(record);
  }
  std::optional<core::Status> poll() override {
    const core::MutexLock lock(mutex_);
    if (outcome_) busy_ = false;
    return std::exchange(outcome_, std::nullopt);
  }
  core::Status wait() override {
    const core::MutexLock lock(mutex_);
    if (!busy_) return core::ok();
    changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return outcome_.has_value(); });
    busy_ = false;
    return *std::exchange(outcome_, std::nullopt);
  }
  [[nodiscard]] bool busy() const override {
    const core::MutexLock lock(mutex_);
    return busy_;
  }
  std::vector<core::OutRecord> take_back() override {
    const core::MutexLock lock(mutex_);
    return std::exchange(records_, {});
  }

 private:
  void work(const std::stop_token& stop) {
    while (true) {
      std::vector<core::OutRecord> records;
      std::vector<core::Position> positions;
      {
        const core::MutexLock lock(mutex_);
        if (!changed_.wait(mutex_, stop, [this]() REQUIRES(mutex_) { return asked_; })) return;
        asked_ = false;
        records.swap(records_);
        positions.swap(positions_);
      }
      auto outcome = publisher_->commit(records, positions);
      {
        const core::MutexLock lock(mutex_);
        records_.swap(records);  // for take_back()
        outcome_ = std::move(outcome);
        changed_.notify_all();
      }
      if (finished_) finished_();
    }
  }

  std::unique_ptr<core::RecordPublisher> publisher_;
  std::function<void()> finished_;
  mutable core::Mutex mutex_;
  core::StoppableCondVar changed_;
  std::vector<core::OutRecord> records_ GUARDED_BY(mutex_);  // empty while a commit is under way
  std::vector<core::Position> positions_ GUARDED_BY(mutex_);
  std::optional<core::Status> outcome_ GUARDED_BY(mutex_);
  bool asked_ GUARDED_BY(mutex_) = false;
  bool busy_ GUARDED_BY(mutex_) = false;
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
