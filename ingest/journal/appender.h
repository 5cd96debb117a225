// Transactions that write one of the journal's files.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/record.h"
#include "core/result.h"
#include "ingest/journal/database.h"

namespace tocsin::ingest {

/// Not thread-safe. begin, append…, then commit; without it rollback() undoes all.
class JournalAppender {
 public:
  static core::Result<std::unique_ptr<JournalAppender>> open(const std::string& path,
                                                             JournalAccess access);

  /// Takes the file's write lock, waiting at most this long. Errors: unavailable (it is held),
  /// failed_precondition (the file was replaced: open it anew).
  core::Status begin(std::chrono::milliseconds longest_wait);
  /// `now`: the record's time when it has none.
  core::Status append(const JournalTopic& topic, const core::OutRecord& record, std::int64_t now);
  /// control.db only.
  core::Status set_position(std::string_view consumer, std::string_view topic, std::int64_t next);
  core::Status commit();
  void rollback();

 private:
  struct Tail {  // of one topic
    Statement insert;
    std::int64_t next = 0;
    bool touched = false;  // in this transaction
  };
  explicit JournalAppender(std::unique_ptr<JournalDatabase> database);
  core::Status prepare(Statement& kept, std::string_view sql);
  core::Status step(Statement& statement);
  core::Result<Tail*> tail(const JournalTopic& topic);
  core::Status write_tails();

  std::unique_ptr<JournalDatabase> database_;
  Statement begin_, commit_, read_next_, write_next_, position_;
  std::map<std::string, Tail, std::less<>> tails_;
  int log_pages_ = 0;        // in the write-ahead log after the last commit
  int next_checkpoint_ = 0;  // when it has this many pages
};

}  // namespace tocsin::ingest
