// Reads one writer's segments in order, across rolls, cuts and damage: one record at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/journal_directory.h"
#include "ingest/journal_format.h"

namespace tocsin::ingest {

enum class TailStart {
  oldest,    // the oldest segment there is
  snapshot,  // the newest segment: it repeats the newest record per key of older ones
  end,
};

/// Not thread-safe. Views it hands out live until the next call of load() or advance().
class JournalTail {
 public:
  /// `topics`: what to hand out; records of others are stepped over.
  JournalTail(std::string directory, std::string writer, std::vector<std::string> topics);

  /// Where to begin when nothing was read yet.
  void start(TailStart where);
  /// Go on with the record of this sequence.
  void seek(std::uint64_t sequence);

  /// Makes current() valid if a record can be had without waiting. False: nothing there yet, or a
  /// gap was met (see take_gap()).
  bool load();
  /// Steps behind current().
  void advance();

  [[nodiscard]] const JournalRecord& current() const noexcept { return record_; }
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  /// When current() was appended; for a snapshot's record, when its original was.
  [[nodiscard]] std::int64_t appended() const noexcept { return appended_; }
  /// Sequence of the record to be read next.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  [[nodiscard]] bool loaded() const noexcept { return loaded_; }
  [[nodiscard]] const std::string& writer() const noexcept { return writer_; }

  /// What is missing before the next record, once; for data_loss.
  std::optional<std::string> take_gap();
  /// New segments may exist: look before saying that there is nothing.
  void directory_changed() noexcept { relist_ = true; }
  /// True when the newest segment file is larger than what was read, or gone; a look at the file
  /// system.
  [[nodiscard]] bool grown() const;
  /// Closes the file and frees the buffer; the next load() opens it again.
  void rest();

 private:
  bool open_at_next();
  bool newest(std::uint64_t first);
  bool open_segment(std::uint64_t first, bool contiguous);
  void locate();
  bool next_batch();
  bool fill(std::size_t needed);
  bool leave_segment();
  void lose(std::string what);
  bool step_over_unread(const BatchHeader& header);
  void enter_batch(const BatchHeader& header);
  bool next_record();
  [[nodiscard]] bool wanted(std::string_view topic) const noexcept;
  [[nodiscard]] std::string path_of(std::uint64_t first) const;

  std::string directory_;
  std::string writer_;
  std::vector<std::string> topics_;
  std::vector<std::uint64_t> segments_;
  bool relist_ = true;
  TailStart start_ = TailStart::oldest;
  bool started_ = false;
  bool located_ = false;  // segment_ and file_at_ say where next_ is

  std::uint64_t segment_ = 0;  // first sequence of the open segment
  FileDescriptor file_;
  bool skip_snapshot_ = false;  // its records were read from the segments before
  bool in_snapshot_ = false;
  std::uint64_t file_at_ = 0;  // offset of buffer_[0] in the file
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;  // of the batch to be looked at
  std::size_t end_ = 0;    // of the valid bytes

  std::size_t batch_end_ = 0;  // end of the entered batch in buffer_; 0: none
  std::size_t record_at_ = 0;
  std::uint64_t batch_next_ = 0;  // sequence of the record at record_at_
  std::uint64_t batch_last_ = 0;  // sequence behind the batch
  std::int64_t batch_time_ = 0;
  bool batch_is_snapshot_ = false;

  std::uint64_t next_ = 0;
  std::uint64_t expected_ = 0;  // first sequence of the next batch in the file
  bool loaded_ = false;
  JournalRecord record_;
  std::uint64_t sequence_ = 0;
  std::int64_t appended_ = 0;
  std::optional<std::string> gap_;
};

}  // namespace tocsin::ingest
