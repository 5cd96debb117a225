#include "app/cli/sync_command.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string_view>
#include <utility>

#include "app/config/transport_settings.h"
#include "app/process/exit_code.h"
#include "app/recordings/recording.h"
#include "core/json.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

using std::chrono::seconds;

constexpr const char* kPositions = "synced.json";
constexpr const char* kLock = "synced.lock";
constexpr std::size_t kMaxPositions = 1U << 20;
constexpr std::uint64_t kBatchBytes = 8U << 20;  // between two positions
constexpr std::uint64_t kBatchRecords = 5'000;
constexpr seconds kSyncPatience{30};

int not_synced(int code, const std::string& message) {
  std::cerr << "tocsin: " << message << "\n";
  return code;
}

bool is_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && (text[first] == '{' || text[first] == '[');
}

/// One sync of a directory at a time.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& directory)
      : file_(open((directory + "/" + kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    held_ = file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) == 0;
  }
  ~DirectoryLock() {
    if (file_ >= 0) close(file_);
  }
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  [[nodiscard]] bool held() const noexcept { return held_; }

 private:
  int file_;
  bool held_ = false;
};

/// How far the directory was sent, per destination; a file beside the journal.
class SentSoFar {
 public:
  SentSoFar(const std::string& directory, std::string destination)
      : path_(directory + "/" + kPositions), destination_(std::move(destination)) {
    std::ifstream in(path_);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto parsed = core::parse_json(text, kMaxPositions);
    if (!parsed) return;
    if (const auto* map = core::as<core::ValueMap>(*parsed)) all_ = *map;
    if (const auto* next = core::as<std::int64_t>(core::find(all_, destination_))) next_ = *next;
  }
  [[nodiscard]] std::int64_t next() const noexcept { return next_; }
  /// Durable, whole or not at all.
  core::Status keep(std::int64_t next) {
    next_ = next;
    std::erase_if(all_, [&](const auto& one) { return one.first == destination_; });
    all_.emplace_back(destination_, next);
    const std::string text = core::to_json(all_) + "\n";
    const std::string fresh = path_ + ".new";
    const int file = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool good =
        file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    good = good && fsync(file) == 0;
    if (file >= 0) close(file);
    if (!good || rename(fresh.c_str(), path_.c_str()) != 0) {
      return core::Error{core::Code::unavailable, path_ + " cannot be written"};
    }
    return core::ok();
  }

 private:
  std::string path_;
  std::string destination_;
  core::ValueMap all_;
  std::int64_t next_ = 0;
};

/// Sends records and moves the position behind what is confirmed.
class Sending {
 public:
  Sending(core::RecordPublisher& publisher, SentSoFar& so_far)
      : publisher_(publisher), so_far_(so_far), next_(so_far.next()) {}

  void take(const core::RecordView& record) {
    if (!status_ || record.offset < next_) return;
    core::OutRecord out;
    out.topic = core::topic::kTelemetry;
    out.key = std::string(record.key.value_or(""));
    if (!record.tombstone) out.value.emplace(record.text());
    // A frame has the times of its own; a JSON record may have none but this one. The record is new
    // there: by its old time the cluster's retention might take it away at once.
    if (is_json(record.text())) out.timestamp = record.timestamp;
    status_ = publisher_.publish(out);
    if (!status_ && status_.error().code == core::Code::resource_exhausted) {
      if ((status_ = publisher_.flush(kSyncPatience))) status_ = publisher_.publish(out);
    }
    if (!status_) return;
    next_ = record.offset + 1;
    ++records_;
    ++batch_records_;
    batch_bytes_ += record.value.size();
    if (batch_bytes_ >= kBatchBytes || batch_records_ >= kBatchRecords) confirm();
  }
  void confirm() {
    if (!status_ || batch_records_ == 0) return;
    if ((status_ = publisher_.flush(kSyncPatience))) status_ = so_far_.keep(next_);
    batch_bytes_ = batch_records_ = 0;
  }
  [[nodiscard]] const core::Status& status() const noexcept { return status_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

 private:
  core::RecordPublisher& publisher_;
  SentSoFar& so_far_;
  core::Status status_;
  std::int64_t next_;
  std::uint64_t records_ = 0;
  std::uint64_t batch_records_ = 0;
  std::uint64_t batch_bytes_ = 0;
};

}  // namespace

int sync_command(const SyncOptions& options) {
  const auto settings = transport_settings(options.config_file, options.out);
  if (!settings) return not_synced(kConfiguration, settings.error().message);
  if (settings->transport.kafka.is_null()) {
    return not_synced(
        kUsage,
        "sync: no broker given: use --out kafka://host:9092, TOCSIN_BROKERS or a configuration");
  }
  core::NullLog log;
  core::NullTelemetry telemetry;
  auto from =
      ingest::Transport::open_recording(options.directory, settings->topics, log, telemetry);
  if (!from) return not_synced(kUnreachable, from.error().message);
  if (auto there = (*from)->ping(seconds(1)); !there) {
    return not_synced(kUnreachable, there.error().message);
  }
  const DirectoryLock lock(options.directory);
  if (!lock.held())
    return not_synced(kUsage, "another sync of " + options.directory + " is running");
  auto to = ingest::Transport::open(settings->transport, settings->topics, log, telemetry);
  if (!to) return not_synced(kConfiguration, to.error().message);
  if (auto answered = (*to)->ping(kSyncPatience); !answered) {
    return not_synced(kUnreachable, answered.error().message);
  }
  if (auto topics = (*to)->ensure_topics(); !topics) {
    return not_synced(kUnreachable, topics.error().message);
  }
  ingest::PublisherOptions publishing;
  publishing.writer = "sync-" + std::to_string(getpid());
  auto publisher = (*to)->publisher(publishing);
  if (!publisher) return not_synced(kUnreachable, publisher.error().message);
  SentSoFar so_far(options.directory, (*to)->describe() + " " + settings->topics.prefix);
  Sending sending(**publisher, so_far);
  Span span;
  span.from.offset = so_far.next();
  span.partition = 0;
  const auto end = read_recording(
      **from, core::topic::kTelemetry, span,
      [&](const core::RecordView& record) { sending.take(record); }, [] {});
  sending.confirm();
  if (!sending.status()) {
    return not_synced(kUnreachable, "sync: " + sending.status().error().message +
                                        "; run it again: it continues where it stopped");
  }
  if (!end) return not_synced(kUnreachable, end.error().message);
  if (options.json) {
    std::cout << core::to_json(core::ValueMap{{"directory", options.directory},
                                              {"to", (*to)->describe()},
                                              {"records", sending.records()}})
              << "\n";
    return kOk;
  }
  std::cout << (sending.records() == 0 ? "nothing new in " + options.directory
                                       : "sent " + std::to_string(sending.records()) +
                                             " records of " + options.directory)
            << " to " << (*to)->describe() << "\n";
  return kOk;
}

}  // namespace tocsin::app
