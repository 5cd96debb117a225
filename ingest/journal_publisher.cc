#include "ingest/journal_publisher.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/text.h"
#include "ingest/journal_source.h"

namespace tocsin::ingest {
namespace {

constexpr std::size_t kSnapshotBatchBytes = std::size_t{4} << 20;
constexpr std::uint64_t kSnapshotsPerSegment = 4;
constexpr std::array<std::string_view, 3> kSyncedTopics = {"issues", "commands", "router-outbox"};

core::Status write_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset,
                      const std::string& path) {
  while (!bytes.empty()) {
    const auto done = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return file_error("writing", path, done < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return core::ok();
}

core::Result<std::vector<std::byte>> read_at(int fd, std::uint64_t offset, std::size_t size,
                                             const std::string& path) {
  std::vector<std::byte> bytes(size);
  std::size_t have = 0;
  while (have < size) {
    const auto got =
        ::pread(fd, bytes.data() + have, size - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("reading", path, errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

std::uint64_t file_size(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

bool must_sync(std::span<const core::OutRecord> records) {
  return std::any_of(records.begin(), records.end(), [](const core::OutRecord& record) {
    return std::find(kSyncedTopics.begin(), kSyncedTopics.end(), record.topic) !=
           kSyncedTopics.end();
  });
}

}  // namespace

JournalPublisher::JournalPublisher(JournalWriterOptions options, FileDescriptor lock,
                                   core::Log& log, core::Telemetry& telemetry)
    : options_(std::move(options)),
      lock_(std::move(lock)),
      log_(log),
      records_(telemetry.counter("tocsin_ingest_published_records_total",
                                 "Records a publisher was given", {{"outcome", "delivered"}})),
      bytes_(telemetry.counter("tocsin_ingest_published_bytes_total", "Bytes written")),
      failures_(telemetry.counter("tocsin_ingest_published_records_total",
                                  "Records a publisher was given", {{"outcome", "failed"}})) {}

std::string JournalPublisher::path(const std::string& name) const {
  return options_.directory + "/" + options_.writer + "/" + name;
}

core::Result<std::unique_ptr<JournalPublisher>> JournalPublisher::open(JournalWriterOptions options,
                                                                       core::Log& log,
                                                                       core::Telemetry& telemetry) {
  const bool bad_name = options.writer.empty() || options.writer == "." || options.writer == ".." ||
                        options.writer.find('/') != std::string::npos;
  if (bad_name) {
    return core::invalid_argument("journal writer name \"" + options.writer +
                                  "\" is not a folder name");
  }
  const std::string folder = options.directory + "/" + options.writer;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return file_error("making", folder, error.value());
  auto lock = lock_writer(folder, options.writer);
  if (!lock) return lock.error();
  std::unique_ptr<JournalPublisher> publisher(
      new JournalPublisher(std::move(options), std::move(*lock), log, telemetry));
  if (auto status = publisher->recover(); !status) return status.error();
  return publisher;
}

core::Status JournalPublisher::recover() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path("."), ignored)) {
    if (entry.path().extension() == ".tmp") std::filesystem::remove(entry.path(), ignored);
  }
  auto segments = list_segments(path("."));
  if (segments.empty()) return start_segment();
  return recover_segment(segments.back());
}

/// The newest segment starts with a complete snapshot (it appeared by a rename), so it alone says
/// what the writer knew.
core::Status JournalPublisher::recover_segment(std::uint64_t first) {
  const std::string name = path(segment_name(first));
  file_ = FileDescriptor(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  if (!file_.open()) return file_error("opening", name, errno);
  auto bytes = read_at(file_.get(), 0, file_size(file_.get()), name);
  if (!bytes) return bytes.error();
  const auto header = decode_segment_header(*bytes);
  if (!header) return header.error().in(name);
  segment_ = sequence_ = first;
  size_ = kSegmentHeaderBytes;
  bool in_snapshot = false;
  for (;;) {
    const auto rest = std::span<const std::byte>(*bytes).subspan(size_);
    const BatchCheck check = check_batch(rest);
    if (check.state != BatchState::complete || check.header.first_sequence != sequence_) break;
    remember_batch(rest.first(check.header.total_bytes()), size_);
    if ((check.header.flags & kSnapshotBegins) != 0) in_snapshot = true;
    if (in_snapshot) snapshot_ += check.header.total_bytes();
    if ((check.header.flags & kSnapshotEnds) != 0) in_snapshot = false;
    size_ += check.header.total_bytes();
    sequence_ += check.header.count;
  }
  if (size_ == bytes->size()) return core::ok();
  log_.warn("journal_cut", {{"path", name},
                            {"offset", static_cast<std::int64_t>(size_)},
                            {"bytes", static_cast<std::int64_t>(bytes->size() - size_)}});
  if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) {
    return file_error("cutting", name, errno);
  }
  if (options_.durable) ::fdatasync(file_.get());
  return core::ok();
}

/// The writer's very first segment: nothing to repeat.
core::Status JournalPublisher::start_segment() {
  const auto header = encode_segment_header({options_.now(), sequence_});
  const std::string name = path(segment_name(sequence_));
  const std::string draft = name + ".tmp";
  FileDescriptor file(::open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.open()) return file_error("making", draft, errno);
  if (auto status = write_at(file.get(), header, 0, draft); !status) return status;
  if (::rename(draft.c_str(), name.c_str()) != 0) return file_error("naming", name, errno);
  file_ = std::move(file);
  segment_ = sequence_;
  size_ = kSegmentHeaderBytes;
  return core::ok();
}

void JournalPublisher::remember(const JournalRecord& record, std::uint64_t offset,
                                std::int64_t appended) {
  if (record.topic == kPositionsTopic) {
    if (record.value) positions_ = parse_positions(*record.value);
    return;
  }
  if (!options_.compacted.contains(record.topic)) return;
  scratch_.assign(record.topic);
  scratch_.push_back('\0');
  scratch_.append(record.key);
  if (!record.value) {
    newest_.erase(scratch_);
    return;
  }
  if (const auto original = record.header(kAppendedHeader);
      original && original->size() == sizeof appended) {
    std::memcpy(&appended, original->data(), sizeof appended);
  }
  newest_[scratch_] = {offset, appended};
}

void JournalPublisher::remember_batch(std::span<const std::byte> batch, std::uint64_t offset) {
  const auto header = peek_batch(batch);
  std::size_t at = kBatchHeaderBytes;
  while (header && at < batch.size()) {
    const auto record = parse_record(batch.subspan(at));
    if (!record) return;
    remember(*record, offset + at, header->append_time);
    at += record->total_bytes;
  }
}

core::Status JournalPublisher::check_topic(std::string_view topic) const {
  if (options_.topics.contains(topic)) return core::ok();
  return core::not_found("topic " + std::string(topic) + " is not one of Tocsin's");
}

core::Status JournalPublisher::write_batch(std::span<const std::byte> batch) {
  const std::string name = path(segment_name(segment_));
  if (auto status = write_at(file_.get(), batch, size_, name); !status) {
    // Half a batch is nothing to readers; without it the next one takes its place.
    [[maybe_unused]] const int cut = ::ftruncate(file_.get(), static_cast<off_t>(size_));
    return status;
  }
  unsynced_ = true;
  return core::ok();
}

core::OutRecord JournalPublisher::positions_record() const {
  core::OutRecord record;
  record.topic = kPositionsTopic;
  record.key = options_.writer;
  record.value = positions_json(positions_);
  return record;
}

core::Status JournalPublisher::append(std::span<const core::OutRecord> records,
                                      std::span<const core::Position> positions) {
  const std::int64_t now = options_.now();
  batch_.begin(sequence_, 0, now);
  for (const auto& record : records) {
    if (auto status = check_topic(record.topic); !status) return status;
    if (auto status = batch_.add(record, now); !status) return status;
  }
  std::map<std::string, std::int64_t> before;
  if (!positions.empty()) {
    before = positions_;
    for (const auto& position : positions) {
      if (position.next >= 0) positions_[position.where.stream] = position.next;
    }
    if (auto status = batch_.add(positions_record(), now); !status) {
      positions_ = std::move(before);
      return status;
    }
  }
  const std::uint32_t count = batch_.count();
  const auto bytes = batch_.finish();
  auto status = write_batch(bytes);
  if (status && options_.durable && must_sync(records)) {
    if (::fdatasync(file_.get()) != 0) {
      status = file_error("syncing", path(segment_name(segment_)), errno);
      // Readers may have seen it already; but it may not survive, so it must not count.
      [[maybe_unused]] const int cut = ::ftruncate(file_.get(), static_cast<off_t>(size_));
    } else {
      unsynced_ = false;
    }
  }
  if (!status) {
    if (!positions.empty()) positions_ = std::move(before);
    return status;
  }
  if (!options_.compacted.empty()) remember_batch(bytes, size_);
  size_ += bytes.size();
  sequence_ += count;
  records_.add(static_cast<double>(records.size()));
  bytes_.add(static_cast<double>(bytes.size()));
  roll_if_due();
  return core::ok();
}

core::Status JournalPublisher::publish(const core::OutRecord& record) {
  const std::lock_guard lock(mutex_);
  auto status = append({&record, 1}, {});
  if (!status) failures_.add();
  // The port knows no "unavailable" here: a disk that takes nothing is a full queue.
  if (!status && status.error().code == core::Code::unavailable) {
    return core::Error{core::Code::resource_exhausted, status.error().message};
  }
  return status;
}

core::Status JournalPublisher::flush(std::chrono::milliseconds /*timeout*/) {
  const std::lock_guard lock(mutex_);
  if (!options_.durable || !unsynced_) return core::ok();
  if (::fdatasync(file_.get()) != 0) {
    return file_error("syncing", path(segment_name(segment_)), errno);
  }
  unsynced_ = false;
  return core::ok();
}

core::Status JournalPublisher::commit(std::span<const core::OutRecord> records,
                                      std::span<const core::Position> positions) {
  if (records.empty() && positions.empty()) return core::ok();
  const std::lock_guard lock(mutex_);
  auto status = append(records, positions);
  if (!status) failures_.add(static_cast<double>(records.size()));
  if (!status && status.error().code == core::Code::resource_exhausted) {
    return core::unavailable(status.error().message);  // nothing visible; may be called again
  }
  return status;
}

core::Result<std::int32_t> JournalPublisher::partitions(std::string_view topic) {
  if (auto status = check_topic(topic); !status) return status.error();
  return std::int32_t{1};
}

void JournalPublisher::roll_if_due() {
  if (size_ < std::max<std::uint64_t>(options_.segment_bytes, kSnapshotsPerSegment * snapshot_)) {
    return;
  }
  if (auto status = roll(); !status) {
    // The old segment goes on growing; the next append tries again.
    log_.warn("journal_roll_failed", {{"path", path("")}, {"reason", status.error().message}});
  }
}

core::Status JournalPublisher::roll() {
  if (options_.durable) ::fdatasync(file_.get());
  const std::uint64_t first = sequence_;
  const std::string name = path(segment_name(first));
  const std::string draft = name + ".tmp";
  FileDescriptor file(::open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.open()) return file_error("making", draft, errno);
  std::uint64_t size = kSegmentHeaderBytes;
  std::uint64_t sequence = first;
  std::unordered_map<std::string, Newest> moved;
  auto status = write_at(file.get(), encode_segment_header({options_.now(), first}), 0, draft);
  if (status) status = write_snapshot(file, size, sequence, moved);
  if (status && options_.durable && ::fdatasync(file.get()) != 0) {
    status = file_error("syncing", draft, errno);
  }
  // The rename makes it visible at once and whole: readers never see half a snapshot.
  if (status && ::rename(draft.c_str(), name.c_str()) != 0) {
    status = file_error("naming", name, errno);
  }
  if (!status) {
    ::unlink(draft.c_str());
    return status;
  }
  if (options_.durable) {
    const FileDescriptor folder(::open(path(".").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.open()) ::fsync(folder.get());
  }
  log_.debug("journal_rolled", {{"path", name}, {"bytes", static_cast<std::int64_t>(size)}});
  file_ = std::move(file);
  segment_ = first;
  size_ = size;
  snapshot_ = size - kSegmentHeaderBytes;
  sequence_ = sequence;
  newest_ = std::move(moved);
  return core::ok();
}

/// Repeats the newest record of every key, in the order they were written, and the positions.
core::Status JournalPublisher::write_snapshot(FileDescriptor& file, std::uint64_t& size,
                                              std::uint64_t& sequence,
                                              std::unordered_map<std::string, Newest>& moved) {
  const std::int64_t now = options_.now();
  const std::string from = path(segment_name(segment_));
  std::vector<std::pair<const std::string*, Newest>> order;
  order.reserve(newest_.size());
  for (const auto& [key, newest] : newest_) order.emplace_back(&key, newest);
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.second.offset < b.second.offset; });

  BatchBuilder batch;
  const auto write_out = [&]() -> core::Status {
    const std::uint32_t count = batch.count();
    const auto bytes = batch.finish();
    if (auto status = write_at(file.get(), bytes, size, "a snapshot"); !status) return status;
    size += bytes.size();
    sequence += count;
    return core::ok();
  };
  batch.begin(sequence, kSnapshotBegins, now);
  for (const auto& [key, newest] : order) {
    auto length = read_at(file_.get(), newest.offset, sizeof(std::uint32_t), from);
    if (!length) return length.error();
    std::uint32_t bytes = 0;
    if (length->size() == sizeof bytes) std::memcpy(&bytes, length->data(), sizeof bytes);
    const auto raw = read_at(file_.get(), newest.offset, bytes, from);
    if (!raw) return raw.error();
    const auto record = parse_record(*raw);
    if (!record || !record->value) {
      return core::Error{core::Code::data_loss, from + " changed below its writer"};
    }
    core::OutRecord copy;
    copy.topic = record->topic;
    copy.key = record->key;
    copy.value = std::string(*record->value);
    copy.timestamp = record->timestamp;
    copy.headers = headers_of(*record);
    if (!record->header(kAppendedHeader)) {
      copy.headers.emplace_back(
          kAppendedHeader,
          std::string(reinterpret_cast<const char*>(&newest.appended), sizeof newest.appended));
    }
    const std::uint64_t offset = size + batch.size();
    if (auto status = batch.add(copy, now); !status) return status;
    moved[*key] = {offset, newest.appended};
    if (batch.size() < kSnapshotBatchBytes) continue;
    if (auto status = write_out(); !status) return status;
    batch.begin(sequence, 0, now);
  }
  forget_lost_writers();
  if (!positions_.empty()) {
    if (auto status = batch.add(positions_record(), now); !status) return status;
  }
  batch.add_flags(kSnapshotEnds);
  return write_out();
}

/// Positions of writers whose folder retention deleted would be repeated for ever.
void JournalPublisher::forget_lost_writers() {
  std::error_code error;
  for (auto it = positions_.begin(); it != positions_.end();) {
    const bool there = std::filesystem::exists(options_.directory + "/" + it->first, error);
    it = there || error ? std::next(it) : positions_.erase(it);
  }
}

}  // namespace tocsin::ingest
