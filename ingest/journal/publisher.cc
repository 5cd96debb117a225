#include "ingest/journal/publisher.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ingest/journal/fork.h"

namespace tocsin::ingest {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBusy{250};       // one try of the thread; then what is queued may be more
constexpr milliseconds kFirstRetry{20};  // after a failure, doubled up to
constexpr milliseconds kLongestRetry{1000};
constexpr std::size_t kBatchRecords = 1000;
constexpr std::size_t kBatchBytes = 1 << 20;

std::size_t size_of(const core::OutRecord& record) {
  return record.key.size() + (record.value ? record.value->size() : 0);
}

}  // namespace

JournalPublisher::JournalPublisher(const JournalTopics& topics, JournalPublisherOptions options,
                                   core::Log& log, core::Telemetry& telemetry)
    : topics_(topics),
      options_(std::move(options)),
      log_(log),
      records_(telemetry.counter("tocsin_ingest_published_records_total",
                                 "Records a publisher was given", {{"outcome", "delivered"}})),
      bytes_(telemetry.counter("tocsin_ingest_published_bytes_total", "Bytes written")),
      failures_(telemetry.counter("tocsin_ingest_published_records_total",
                                  "Records a publisher was given", {{"outcome", "failed"}})) {}

JournalPublisher::~JournalPublisher() {
  {
    const core::MutexLock lock(queue_mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  const JournalUse use;
  telemetry_.reset();
  control_.reset();
}

core::Result<const JournalTopic*> JournalPublisher::check(const core::OutRecord& record) const {
  const auto topic = topics_.find(record.topic);
  if (topic == topics_.end()) {
    return core::not_found("topic " + record.topic + " is not one of ours");
  }
  if (size_of(record) <= topic->second.max_bytes) return &topic->second;
  return core::invalid_argument("a record of " + std::to_string(size_of(record)) +
                                " bytes is larger than topic " + record.topic + " takes (" +
                                std::to_string(topic->second.max_bytes) + ")");
}

core::Result<std::int32_t> JournalPublisher::partitions(std::string_view topic) {
  if (topics_.contains(topic)) return 1;
  return core::not_found("topic " + std::string(topic) + " is not one of ours");
}

// ── On the caller's thread ───────────────────────────────────────────────────────────────────

core::Status JournalPublisher::publish(const core::OutRecord& record) {
  if (auto topic = check(record); !topic) return topic.error();
  bool wake = false;
  {
    const core::MutexLock lock(queue_mutex_);
    if (queue_.size() >= options_.max_queued_records ||
        queued_bytes_ + size_of(record) > options_.max_queued_bytes) {
      return core::Error{
          core::Code::resource_exhausted,
          "the journal's queue is full" + (trouble_ ? ": " + trouble_->message : std::string())};
    }
    queue_.push_back(record);
    // Its time is now, not when it is written.
    if (record.timestamp == 0) queue_.back().timestamp = options_.now();
    queued_bytes_ += size_of(record);
    ++queued_;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    // The thread waits for the first one, then for a full batch or its time.
    wake = queue_.size() == 1 || queue_.size() >= kBatchRecords || queued_bytes_ >= kBatchBytes;
  }
  if (wake) changed_.notify_all();
  return core::ok();
}

core::Status JournalPublisher::flush(milliseconds timeout) {
  const core::MutexLock lock(queue_mutex_);
  ++flushing_;
  changed_.notify_all();
  const bool done = changed_.wait_for(queue_mutex_, timeout,
                                      [this, target = queued_]()
                                          REQUIRES(queue_mutex_) { return written_ >= target; });
  --flushing_;
  if (done) return core::ok();
  if (trouble_ && !trouble_->retryable()) return *trouble_;
  return core::Error{core::Code::deadline_exceeded,
                     std::to_string(queue_.size()) + " records are not written yet" +
                         (trouble_ ? ": " + trouble_->message : std::string())};
}

core::Status JournalPublisher::commit(std::span<const core::OutRecord> records,
                                      std::span<const core::Position> positions) {
  if (!positions.empty() && options_.owner != nullptr && !options_.owner->held()) {
    return core::Error{core::Code::failed_precondition,
                       "group " + options_.group + " is not ours any more"};
  }
  for (const auto& record : records) {
    if (auto topic = check(record); !topic) return topic.error();
  }
  const auto status = write(records, positions, options_.commit_timeout);
  count(records, status.has_value());
  return status;
}

// ── Transactions ─────────────────────────────────────────────────────────────────────────────

core::Result<JournalAppender*> JournalPublisher::appender(JournalFile file) {
  auto& kept = file == JournalFile::telemetry ? telemetry_ : control_;
  if (kept == nullptr) {
    const std::string path = journal_path(options_.directory, file);
    auto opened = JournalAppender::open(path, options_.access);
    if (!opened) {
      // It may have been taken away since the publisher was made.
      if (auto status = options_.prepare(); !status) return status.error();
      opened = JournalAppender::open(path, options_.access);
      if (!opened) return opened.error();
    }
    kept = std::move(*opened);
  }
  return kept.get();
}

core::Status JournalPublisher::write(std::span<const core::OutRecord> records,
                                     std::span<const core::Position> positions,
                                     milliseconds longest_wait) {
  const JournalUse use;  // for the whole transaction
  const core::MutexLock lock(write_mutex_);
  auto status = write_all(records, positions, longest_wait);
  if (status) return status;
  for (auto* kept : {&telemetry_, &control_}) {
    if (*kept != nullptr) (*kept)->rollback();
    // Whatever it was, a new connection has none of it; a busy file is not worth one.
    if (!status.error().retryable()) kept->reset();
  }
  return status;
}

core::Status JournalPublisher::write_all(std::span<const core::OutRecord> records,
                                         std::span<const core::Position> positions,
                                         milliseconds longest_wait) {
  std::vector<JournalAppender*> open;
  const auto begin = [&](JournalFile file) REQUIRES(write_mutex_) -> core::Status {
    auto to = appender(file);
    if (!to) return to.error();
    open.push_back(*to);
    return (*to)->begin(longest_wait);
  };
  const auto in = [&](JournalFile file) {
    return std::any_of(records.begin(), records.end(), [&](const core::OutRecord& record) {
      return topics_.find(record.topic)->second.file == file;
    });
  };
  if (in(JournalFile::telemetry)) {
    if (auto status = begin(JournalFile::telemetry); !status) return status;
  }
  const bool moves = std::any_of(positions.begin(), positions.end(),
                                 [](const core::Position& at) { return at.next >= 0; });
  if (moves || in(JournalFile::control)) {
    if (auto status = begin(JournalFile::control); !status) return status;
  }
  const std::int64_t now = options_.now();
  for (const auto& record : records) {
    const JournalTopic& topic = topics_.find(record.topic)->second;
    auto& to = topic.file == JournalFile::telemetry ? telemetry_ : control_;
    if (auto status = to->append(topic, record, now); !status) return status;
  }
  for (const auto& at : positions) {
    if (at.next < 0) continue;
    auto status = control_->set_position(options_.group, at.where.stream, at.next);
    if (!status) return status;
  }
  for (auto* file : open) {
    if (auto status = file->commit(); !status) return status;
  }
  return core::ok();
}

void JournalPublisher::count(std::span<const core::OutRecord> records, bool written) {
  (written ? records_ : failures_).add(static_cast<double>(records.size()));
  if (!written) return;
  std::size_t bytes = 0;
  for (const auto& record : records) bytes += size_of(record);
  bytes_.add(static_cast<double>(bytes));
}

// ── The thread ───────────────────────────────────────────────────────────────────────────────

/// Waits for records, then for what comes within `linger`. The batch's records are moved out: their
/// shells keep the places in the queue until they are written.
std::vector<core::OutRecord> JournalPublisher::next_batch() {
  changed_.wait(queue_mutex_,
                [this]() REQUIRES(queue_mutex_) { return closing_ || !queue_.empty(); });
  changed_.wait_for(queue_mutex_, options_.linger, [this]() REQUIRES(queue_mutex_) {
    return closing_ || flushing_ > 0 || queued_bytes_ >= kBatchBytes ||
           queue_.size() >= kBatchRecords;
  });
  std::vector<core::OutRecord> batch;
  std::size_t bytes = 0;
  for (auto& record : queue_) {
    if (batch.size() >= kBatchRecords || bytes >= kBatchBytes) break;
    bytes += size_of(record);
    batch.push_back(std::move(record));
  }
  return batch;
}

/// Others may queue while it writes.
core::Status JournalPublisher::write_batch(std::span<const core::OutRecord> batch) {
  const core::MutexUnlock unlocked(queue_mutex_);
  return write(batch, {}, kBusy);
}

void JournalPublisher::run() {
  pthread_setname_np(pthread_self(), "tocsin-journal");
  milliseconds retry{0};
  std::vector<core::OutRecord> batch;
  const core::MutexLock lock(queue_mutex_);
  for (;;) {
    if (batch.empty()) batch = next_batch();
    if (batch.empty()) return;  // closing, and all is written
    const auto status = write_batch(batch);
    if (status) {
      count(batch, true);
      for (const auto& record : batch) queued_bytes_ -= size_of(record);
      written_ += batch.size();
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(batch.size()));
      batch.clear();
      trouble_.reset();
      retry = milliseconds{0};
      changed_.notify_all();
      continue;
    }
    if (!trouble_ || trouble_->message != status.error().message) {
      log_.warn("journal_not_written", {{"error", status.error().message}});
    }
    trouble_ = status.error();
    retry = std::min(std::max(retry * 2, kFirstRetry), kLongestRetry);
    if (closing_) {
      // flush() was the time to wait; the end does not wait for a disk to have room.
      count(batch, false);
      failures_.add(static_cast<double>(queue_.size() - batch.size()));
      log_.warn("journal_records_lost",
                {{"records", std::uint64_t{queue_.size()}}, {"error", status.error().message}});
      return;
    }
    changed_.wait_for(queue_mutex_, retry, [this]() REQUIRES(queue_mutex_) { return closing_; });
  }
}

}  // namespace tocsin::ingest
