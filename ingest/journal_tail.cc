#include "ingest/journal_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tocsin::ingest {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;

}  // namespace

JournalTail::JournalTail(std::string directory, std::string writer, std::vector<std::string> topics)
    : directory_(std::move(directory)), writer_(std::move(writer)), topics_(std::move(topics)) {}

std::string JournalTail::path_of(std::uint64_t first) const {
  return directory_ + "/" + writer_ + "/" + segment_name(first);
}

bool JournalTail::wanted(std::string_view topic) const noexcept {
  return std::find(topics_.begin(), topics_.end(), topic) != topics_.end();
}

void JournalTail::start(TailStart where) {
  start_ = where;
  started_ = false;
  located_ = false;
  loaded_ = false;
  batch_end_ = 0;
  locate();
  if (!started_) start_ = TailStart::oldest;  // what a new writer writes is all new
}

void JournalTail::seek(std::uint64_t sequence) {
  next_ = sequence;
  started_ = true;
  located_ = false;
  loaded_ = false;
  batch_end_ = 0;
  relist_ = true;
}

/// Turns a TailStart into a sequence. Leaves it open while the writer has no segment.
void JournalTail::locate() {
  segments_ = list_segments(directory_ + "/" + writer_);
  relist_ = false;
  if (segments_.empty()) return;
  const auto where = start_;
  const std::uint64_t first = where == TailStart::oldest ? segments_.front() : segments_.back();
  if (!open_segment(first, /*contiguous=*/false)) return;
  next_ = first;
  started_ = true;
  if (where != TailStart::end) return;
  const auto topics = std::exchange(topics_, {});  // step over everything
  while (next_batch()) {
    next_ = batch_last_;
    batch_end_ = 0;
  }
  topics_ = topics;
  gap_.reset();
  next_ = std::max(next_, expected_);
}

std::optional<std::string> JournalTail::take_gap() { return std::exchange(gap_, std::nullopt); }

void JournalTail::lose(std::string what) {
  gap_ = "journal writer " + writer_ + ": " + std::move(what);
}

void JournalTail::rest() {
  file_.reset();
  if (loaded_ || batch_end_ != 0) return;
  file_at_ += begin_;
  begin_ = end_ = 0;
  buffer_ = {};
}

bool JournalTail::grown() const {
  if (!located_) return true;
  struct stat info {};
  if (::stat(path_of(segment_).c_str(), &info) != 0) return true;
  return static_cast<std::uint64_t>(info.st_size) > file_at_ + end_;
}

/// Is there no segment behind this one (the list is read again, it may be old)?
bool JournalTail::newest(std::uint64_t first) {
  segments_ = list_segments(directory_ + "/" + writer_);
  return segments_.empty() || segments_.back() <= first;
}

bool JournalTail::open_segment(std::uint64_t first, bool contiguous) {
  FileDescriptor file(::open(path_of(first).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) {
    relist_ = true;
    return false;
  }
  std::array<std::byte, kSegmentHeaderBytes> bytes{};
  const auto got = ::pread(file.get(), bytes.data(), bytes.size(), 0);
  const std::size_t size = got > 0 ? static_cast<std::size_t>(got) : 0;
  if (size < kSegmentHeaderBytes && newest(first)) {
    relist_ = true;  // its writer has made the file and not yet written the header: wait
    return false;
  }
  const auto header = decode_segment_header(std::span<const std::byte>(bytes).first(size));
  file_ = std::move(file);
  segment_ = first;
  located_ = true;
  file_at_ = kSegmentHeaderBytes;
  begin_ = end_ = 0;
  batch_end_ = 0;
  expected_ = first;
  skip_snapshot_ = contiguous;
  in_snapshot_ = false;
  if (!header || header->first_sequence != first) {
    // Nothing in it can be trusted; leave_segment() goes on behind it when there is a newer one.
    lose("segment " + segment_name(first) + " is damaged (" +
         (header ? "its name and header disagree" : header.error().message) + ")");
    file_at_ = kMaxBatchBytes << 20;  // beyond any file: reads as empty
  }
  return true;
}

/// Opens the segment that holds next_.
bool JournalTail::open_at_next() {
  if (!started_) {
    locate();
    return started_;
  }
  segments_ = list_segments(directory_ + "/" + writer_);
  relist_ = false;
  if (segments_.empty()) return false;
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), next_);
  if (after == segments_.begin()) {
    lose("records " + std::to_string(next_) + " to " + std::to_string(segments_.front() - 1) +
         " are gone (retention)");
    if (!open_segment(segments_.front(), /*contiguous=*/false)) return false;
    next_ = segments_.front();
    return true;
  }
  const std::uint64_t first = *(after - 1);
  return open_segment(first, /*contiguous=*/first == next_);
}

/// Has at least `needed` bytes from begin_ on in the buffer, if the file has them.
bool JournalTail::fill(std::size_t needed) {
  if (end_ - begin_ >= needed) return true;
  if (!file_.open()) {
    file_ = FileDescriptor(::open(path_of(segment_).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_.open()) return false;
  }
  if (begin_ != 0) {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    file_at_ += begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  if (needed > kReadBytes) {
    // The length may be damage: never make room for more than the file has.
    struct stat info {};
    if (::fstat(file_.get(), &info) != 0) return false;
    if (static_cast<std::uint64_t>(info.st_size) < file_at_ + needed) return false;
  }
  const std::size_t room = std::max(needed, kReadBytes);
  if (buffer_.size() < room) buffer_.resize(room);
  while (end_ < needed) {
    const auto got = ::pread(file_.get(), buffer_.data() + end_, buffer_.size() - end_,
                             static_cast<off_t>(file_at_ + end_));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    end_ += static_cast<std::size_t>(got);
  }
  return true;
}

/// At the end of what the segment has: on to the next one if there is one.
bool JournalTail::leave_segment() {
  if (relist_) {
    segments_ = list_segments(directory_ + "/" + writer_);
    relist_ = false;
  }
  const auto newer = std::upper_bound(segments_.begin(), segments_.end(), segment_);
  if (newer == segments_.end()) return false;
  const std::uint64_t first = *newer;
  if (first != expected_ && !gap_) {
    lose("records " + std::to_string(expected_) + " to " + std::to_string(first - 1) +
         " cannot be read; going on with segment " + segment_name(first));
  }
  const bool contiguous = first == expected_ && next_ >= first;
  if (!open_segment(first, contiguous)) return false;
  next_ = std::max(next_, first);
  return true;
}

/// A batch of one record of another topic need not be read.
bool JournalTail::step_over_unread(const BatchHeader& header) {
  constexpr std::size_t kPeek = kBatchHeaderBytes + kRecordHeaderBytes + 64;
  if (header.count != 1 || header.flags != 0 || header.total_bytes() <= kReadBytes) return false;
  if (!fill(kPeek)) return false;
  const auto* record = buffer_.data() + begin_ + kBatchHeaderBytes;
  std::uint16_t topic_bytes = 0;
  std::memcpy(&topic_bytes, record + 4, sizeof topic_bytes);
  if (topic_bytes > 64) return false;
  if (wanted({reinterpret_cast<const char*>(record) + kRecordHeaderBytes, topic_bytes})) {
    return false;
  }
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0 ||
      static_cast<std::uint64_t>(info.st_size) < file_at_ + begin_ + header.total_bytes()) {
    return false;
  }
  file_at_ += begin_ + header.total_bytes();
  begin_ = end_ = 0;
  return true;
}

void JournalTail::enter_batch(const BatchHeader& header) {
  if ((header.flags & kSnapshotBegins) != 0) in_snapshot_ = true;
  batch_is_snapshot_ = in_snapshot_;
  if ((header.flags & kSnapshotEnds) != 0) in_snapshot_ = false;
  batch_end_ = begin_ + header.total_bytes();
  record_at_ = begin_ + kBatchHeaderBytes;
  batch_next_ = header.first_sequence;
  batch_last_ = header.first_sequence + header.count;
  batch_time_ = header.append_time;
  expected_ = batch_last_;
  begin_ = batch_end_;
}

/// Enters the next batch that holds next_ or what comes after it. False: there is none yet, or a
/// gap is to be told first.
bool JournalTail::next_batch() {
  batch_end_ = 0;
  for (int looks = 0;;) {
    if (!located_ && !open_at_next()) return false;
    if (gap_) return false;  // told before what follows it
    if (fill(kBatchHeaderBytes)) {
      const std::span<const std::byte> seen(buffer_.data() + begin_, end_ - begin_);
      const auto header = peek_batch(seen);
      const bool in_order = header && header->first_sequence == expected_;
      if (in_order && header->count == 1 && step_over_unread(*header)) {
        expected_ += 1;
        next_ = std::max(next_, expected_);
        continue;
      }
      if (in_order && fill(header->total_bytes()) &&
          check_batch({buffer_.data() + begin_, end_ - begin_}).state == BatchState::complete) {
        enter_batch(*header);
        const bool seen_before = (batch_is_snapshot_ && skip_snapshot_) || batch_last_ <= next_;
        if (!seen_before) return true;
        next_ = std::max(next_, batch_last_);
        batch_end_ = 0;
        continue;
      }
    }
    // What is there may be cut off and written anew by the writer: read it again next time.
    end_ = begin_;
    if (looks++ == 0 && relist_) {
      // Whatever was appended before the next segment appeared is read before going there.
      segments_ = list_segments(directory_ + "/" + writer_);
      relist_ = false;
      if (std::upper_bound(segments_.begin(), segments_.end(), segment_) != segments_.end()) {
        continue;
      }
    }
    if (!leave_segment()) return false;
    looks = 0;
  }
}

/// Finds the next wanted record in the entered batch.
bool JournalTail::next_record() {
  while (record_at_ < batch_end_) {
    const auto record = parse_record({buffer_.data() + record_at_, batch_end_ - record_at_});
    if (!record) break;  // check_batch() went over all of them: not reached
    const std::uint64_t sequence = batch_next_;
    if (sequence >= next_ && wanted(record->topic)) {
      record_ = *record;
      sequence_ = sequence;
      appended_ = batch_time_;
      if (batch_is_snapshot_) {
        const auto original = record->header(kAppendedHeader);
        if (original && original->size() == sizeof appended_) {
          std::memcpy(&appended_, original->data(), sizeof appended_);
        }
      }
      loaded_ = true;
      return true;
    }
    record_at_ += record->total_bytes;
    ++batch_next_;
  }
  next_ = std::max(next_, batch_last_);
  batch_end_ = 0;
  return false;
}

bool JournalTail::load() {
  if (loaded_) return true;
  if (gap_) return false;
  for (;;) {
    if (batch_end_ != 0 && next_record()) return true;
    if (!next_batch()) return false;
  }
}

void JournalTail::advance() {
  if (!loaded_) return;
  loaded_ = false;
  record_at_ += record_.total_bytes;
  ++batch_next_;
  next_ = batch_next_;
  if (record_at_ >= batch_end_) batch_end_ = 0;
}

}  // namespace tocsin::ingest
