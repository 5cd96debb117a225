// One connection to one of the journal's files, and statements on it. SQLite stays in here.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "ingest/journal/guard.h"
#include "ingest/journal/layout.h"

namespace tocsin::ingest {

/// A prepared statement, kept by its owner and used again and again. Parameters count from 1,
/// columns from 0. What is bound is borrowed until reset(); columns until the next step().
class Statement {
 public:
  Statement() = default;
  Statement& bind(int at, std::int64_t value);
  Statement& bind(int at, std::string_view text);
  /// nullopt: NULL.
  Statement& bind_blob(int at, std::optional<std::string_view> bytes);
  /// SQLITE_ROW, SQLITE_DONE or what went wrong.
  int step() { return sqlite3_step(statement_.get()); }
  void reset();
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string_view bytes(int column) const;
  [[nodiscard]] bool null(int column) const;
  explicit operator bool() const { return statement_ != nullptr; }

 private:
  friend class JournalDatabase;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
};

/// Resets a statement when a scope ends, also by an exception: an open one holds a snapshot.
class StatementScope {
 public:
  explicit StatementScope(Statement& statement) : statement_(statement) {}
  ~StatementScope() { statement_.reset(); }
  StatementScope(const StatementScope&) = delete;
  StatementScope& operator=(const StatementScope&) = delete;

 private:
  Statement& statement_;
};

/// Its inode; 0 when there is no such file. Never opens it: closing would drop the locks that this
/// process has on it.
std::uint64_t file_identity(const std::string& path);

enum class JournalAccess : std::uint8_t {
  read,          // never changes the file; may make its log's index, as a writer would
  recorded,      // the same, and a file without a log is taken to have no writer: nothing is made
  write,         // a commit survives kill -9
  write_durable  // and a power cut
};

/// Not thread-safe. One thread at a time uses a connection and the statements made from it.
class JournalDatabase {
 public:
  /// Opens a file that exists. Errors: failed_precondition (not a journal file of this format),
  /// data_loss (damaged, with the command that salvages it), unavailable (busy, cannot be opened).
  static core::Result<std::unique_ptr<JournalDatabase>> open(const std::string& path,
                                                             JournalAccess access);
  /// Makes the file with its pragmas if there is none; it appears whole, with `schema` in it.
  static core::Status create(const std::string& path, std::string_view schema);

  ~JournalDatabase();
  JournalDatabase(const JournalDatabase&) = delete;
  JournalDatabase& operator=(const JournalDatabase&) = delete;

  core::Result<Statement> prepare(std::string_view sql);
  /// One or more statements without parameters or rows.
  core::Status run(const char* sql);
  /// The first column of the first row; `otherwise` when there is no row.
  core::Result<std::int64_t> number(std::string_view sql, std::int64_t otherwise = 0);
  /// How long a statement waits for another process's lock before it is `unavailable`.
  void wait_for_locks(std::chrono::milliseconds longest) { longest_wait_ = longest; }
  /// The connection's last error in our words.
  [[nodiscard]] core::Error error() const;
  /// Whether the path names another file by now: this one was deleted or replaced.
  [[nodiscard]] bool replaced() const;
  /// Copies what the write-ahead log holds into the file, as far as readers let it, and without
  /// waiting for writers. Returns the log's pages.
  core::Result<int> checkpoint(bool restart = false);
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] sqlite3* handle() const { return handle_; }

 private:
  explicit JournalDatabase(std::string path) : path_(std::move(path)) {}
  core::Status connect(int flags);
  core::Status check_format();
  static int on_busy(void* self, int attempt);

  std::string path_;
  sqlite3* handle_ = nullptr;
  FileGuard::File file_;        // as it is held against other SQLites of this process
  std::uint64_t identity_ = 0;  // of the file that is open
  std::chrono::milliseconds longest_wait_{1000};
  std::chrono::steady_clock::time_point waiting_since_;
};

}  // namespace tocsin::ingest
