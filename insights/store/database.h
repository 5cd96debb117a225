// One connection to the store's file, and statements on it. SQLite stays in this folder.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace tocsin::insights {

/// The first result that was an error, and what the system said of it.
struct StoreFailure {
  int code = SQLITE_OK;
  int system = 0;
  void note(int result, sqlite3* handle);
};

/// A prepared statement. Parameters count from 1, columns from 0. What is bound is copied.
class StoreStatement {
 public:
  StoreStatement() = default;
  StoreStatement& bind(int at, std::int64_t value);
  StoreStatement& bind(int at, std::string_view text);
  StoreStatement& bind(int at, const std::optional<std::int64_t>& value);
  StoreStatement& bind(int at, const std::optional<std::string>& text);
  StoreStatement& bind_blob(int at, std::string_view bytes);
  /// Without a copy: `bytes` stay as they are until the statement is run to its end or reset.
  StoreStatement& bind_blob_in_place(int at, std::string_view bytes);
  /// True: there is a row. False: there is none, or it failed: see StoreDatabase::failure().
  bool next();
  /// Runs it to its end, and makes it ready for other values.
  void run();
  void reset();
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] bool null(int column) const;
  [[nodiscard]] std::optional<std::int64_t> maybe(int column) const;

 private:
  friend class StoreDatabase;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  StoreFailure* failed_ = nullptr;  // of the database
};

/// Not thread-safe.
class StoreDatabase {
 public:
  /// `write`: makes the file if there is none. Errors: unavailable (cannot be opened), data_loss
  /// (damaged, or not a database).
  static core::Result<std::unique_ptr<StoreDatabase>> open(const std::string& path, bool write);
  ~StoreDatabase();
  StoreDatabase(const StoreDatabase&) = delete;
  StoreDatabase& operator=(const StoreDatabase&) = delete;

  StoreStatement prepare(std::string_view sql);
  /// Statements without parameters or rows.
  void run(const char* sql);
  std::int64_t number(std::string_view sql);
  /// How many rows the last statement changed.
  [[nodiscard]] std::int64_t changes() const { return sqlite3_changes64(handle_); }
  [[nodiscard]] std::int64_t last_row() const { return sqlite3_last_insert_rowid(handle_); }
  /// Pages that were not in memory and had to be read.
  [[nodiscard]] std::int64_t pages_read() const;
  /// What has failed since the last call, in SQLite's words. data_loss: the file is damaged.
  /// resource_exhausted: the disk has no room, or a quota or limit of files is reached.
  core::Status failure();
  /// Bytes in a row are not what was written: failure() says so, unless something failed before.
  void found_damage() { failed_.note(SQLITE_CORRUPT, nullptr); }

 private:
  explicit StoreDatabase(std::string path) : path_(std::move(path)) {}
  std::string path_;
  sqlite3* handle_ = nullptr;
  StoreFailure failed_;
};

}  // namespace tocsin::insights
