#include "insights/store/database.h"

#include <cerrno>
#include <system_error>
#include <utility>

namespace tocsin::insights {
namespace {

constexpr int kWaitForWriterMs = 2000;

bool is_damage(int code) { return code == SQLITE_CORRUPT || code == SQLITE_NOTADB; }

// SQLite tells a full disk by a code of its own, but neither a quota nor a limit of files.
bool lacks_room(const StoreFailure& failed) {
  if (failed.code == SQLITE_FULL) return true;
  const bool by_system = failed.code == SQLITE_IOERR || failed.code == SQLITE_CANTOPEN;
  return by_system &&
         (failed.system == ENOSPC || failed.system == EDQUOT || failed.system == EFBIG);
}

// A commit that fails does not leave the system's error with the connection: the file that it wrote has it.
int last_errno(sqlite3* handle) {
  if (const int told = sqlite3_system_errno(handle); told != 0) return told;
  for (const int which : {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER}) {
    sqlite3_file* file = nullptr;
    int found = 0;
    if (sqlite3_file_control(handle, "main", which, &file) != SQLITE_OK || file == nullptr ||
        file->pMethods == nullptr)
      continue;
    if (file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &found) == SQLITE_OK &&
        found != 0)
      return found;
  }
  return 0;
}

}  // namespace

void StoreFailure::note(int result, sqlite3* handle) {
  if (code != SQLITE_OK) return;
  code = result & 0xff;
  system = handle == nullptr ? 0 : last_errno(handle);
}

StoreStatement& StoreStatement::bind(int at, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), at, value);
  return *this;
}
StoreStatement& StoreStatement::bind(int at, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), at, text.data(), text.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
  return *this;
}
StoreStatement& StoreStatement::bind(int at, const std::optional<std::int64_t>& value) {
  if (value) return bind(at, *value);
  sqlite3_bind_null(statement_.get(), at);
  return *this;
}
StoreStatement& StoreStatement::bind(int at, const std::optional<std::string>& text) {
  if (text) return bind(at, std::string_view(*text));
  sqlite3_bind_null(statement_.get(), at);
  return *this;
}
StoreStatement& StoreStatement::bind_blob(int at, std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), at, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  return *this;
}
StoreStatement& StoreStatement::bind_blob_in_place(int at, std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), at, bytes.data(), bytes.size(), SQLITE_STATIC);
  return *this;
}

bool StoreStatement::next() {
  if (!statement_) return false;
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) failed_->note(code, sqlite3_db_handle(statement_.get()));
  return false;
}

void StoreStatement::run() {
  while (next()) {
  }
  reset();
}

void StoreStatement::reset() {
  if (!statement_) return;
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

std::int64_t StoreStatement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}
std::string StoreStatement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
}
bool StoreStatement::null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}
std::optional<std::int64_t> StoreStatement::maybe(int column) const {
  return null(column) ? std::nullopt : std::optional<std::int64_t>(integer(column));
}

core::Result<std::unique_ptr<StoreDatabase>> StoreDatabase::open(const std::string& path,
                                                                 bool write) {
  std::unique_ptr<StoreDatabase> out(new StoreDatabase(path));
  const int flags = (write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE) |
                    SQLITE_OPEN_NOMUTEX;
  if (const int code = sqlite3_open_v2(path.c_str(), &out->handle_, flags, nullptr);
      code != SQLITE_OK) {
    out->failed_.note(code, out->handle_);
    return out->failure().error();
  }
  sqlite3_busy_timeout(out->handle_, kWaitForWriterMs);
  // A reader that closes last would empty the log of a file that has taken the place of its own.
  if (!write) sqlite3_db_config(out->handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  // A writer finds the pages of its indices in memory, and writes a page that changes often once.
  out->run(write ? "PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 8192"
                 : "PRAGMA query_only = 1");
  if (auto status = out->failure(); !status) return status.error();
  return out;
}

StoreDatabase::~StoreDatabase() { sqlite3_close_v2(handle_); }

StoreStatement StoreDatabase::prepare(std::string_view sql) {
  StoreStatement out;
  sqlite3_stmt* made = nullptr;
  const int code =
      sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &made, nullptr);
  if (code != SQLITE_OK) failed_.note(code, handle_);
  out.statement_.reset(made);
  out.failed_ = &failed_;
  return out;
}

void StoreDatabase::run(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) failed_.note(code, handle_);
}

std::int64_t StoreDatabase::number(std::string_view sql) {
  StoreStatement statement = prepare(sql);
  return statement.next() ? statement.integer(0) : 0;
}

std::int64_t StoreDatabase::pages_read() const {
  int now = 0;
  int most = 0;
  sqlite3_db_status(handle_, SQLITE_DBSTATUS_CACHE_MISS, &now, &most, 0);
  return now;
}

core::Status StoreDatabase::failure() {
  const StoreFailure failed = std::exchange(failed_, StoreFailure());
  if (failed.code == SQLITE_OK) return core::ok();
  std::string what = path_ + ": " + sqlite3_errstr(failed.code);
  const bool by_system = failed.code == SQLITE_IOERR || failed.code == SQLITE_CANTOPEN;
  if (by_system && failed.system != 0)
    what += " (" + std::generic_category().message(failed.system) + ")";
  if (is_damage(failed.code)) return core::Error{core::Code::data_loss, what};
  if (lacks_room(failed)) return core::Error{core::Code::resource_exhausted, what};
  return core::unavailable(what);
}

}  // namespace tocsin::insights
