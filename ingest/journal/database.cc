#include "ingest/journal/database.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "ingest/journal/directory.h"
#include "ingest/journal/fork.h"

namespace tocsin::ingest {
namespace {

constexpr std::int64_t kApplicationId = 0x544F4353;  // "TOCS"
constexpr std::int64_t kFormat = 2;

/// The name under which SQLite neither locks nor looks for a log: for a folder that nobody writes.
std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      constexpr const char* kDigits = "0123456789ABCDEF";
      uri += {'%', kDigits[c >> 4 & 15], kDigits[c & 15]};
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

core::Error damaged(const std::string& path, std::string_view how) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return {core::Code::data_loss, "journal file " + path + " is damaged (" + std::string(how) +
                                     "): `tocsin journal check " + folder +
                                     "` says what is wrong, `tocsin journal salvage " + folder +
                                     " NEWFOLDER` copies what can be read"};
}

}  // namespace

std::uint64_t file_identity(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

Statement& Statement::bind(int at, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), at, value);
  return *this;
}

Statement& Statement::bind(int at, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_blob(int at, std::optional<std::string_view> bytes) {
  if (!bytes) {
    sqlite3_bind_null(statement_.get(), at);
  } else {
    const char* data = bytes->empty() ? "" : bytes->data();  // a null pointer would mean NULL
    sqlite3_bind_blob64(statement_.get(), at, data, bytes->size(), SQLITE_STATIC);
  }
  return *this;
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view Statement::bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return data == nullptr ? std::string_view() : std::string_view(data, std::size_t(size));
}

bool Statement::null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

core::Error JournalDatabase::error() const {
  const int code = sqlite3_extended_errcode(handle_);
  const std::string words = sqlite3_errmsg(handle_);
  const int why = sqlite3_system_errno(handle_);
  const auto say = [&](core::Code as) {
    std::string text = "journal file " + path_ + ": " + words;
    if ((code & 0xFF) == SQLITE_IOERR && why != 0) text += std::string(" (") + strerror(why) + ")";
    return core::Error{as, std::move(text)};
  };
  switch (code & 0xFF) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return damaged(path_, words);
    case SQLITE_FULL:
      return say(core::Code::resource_exhausted);
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_NOMEM:
      return say(core::Code::unavailable);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return say(core::Code::permission_denied);
    default:
      return say(core::Code::internal);
  }
}

/// SQLite's own waits grow to 100 ms, which is a hundred commits.
int JournalDatabase::on_busy(void* self, int attempt) {
  auto& database = *static_cast<JournalDatabase*>(self);
  const auto now = std::chrono::steady_clock::now();
  if (attempt == 0) database.waiting_since_ = now;
  if (now - database.waiting_since_ >= database.longest_wait_) return 0;
  std::this_thread::sleep_for(std::chrono::microseconds{std::min(50 * (attempt + 1), 1000)});
  return 1;
}

JournalDatabase::~JournalDatabase() {
  const JournalUse use;
  disconnect(handle_);
}

core::Status JournalDatabase::connect(int flags) {
  const auto file = before_connecting(path_);
  if (!file) return file.error();
  file_ = *file;
  const bool still = flags == SQLITE_OPEN_READONLY && ::access((path_ + "-wal").c_str(), F_OK) != 0;
  const std::string name = still ? immutable_uri(path_) : path_;
  flags |= SQLITE_OPEN_NOMUTEX | (still ? SQLITE_OPEN_URI : 0);
  const int opened = sqlite3_open_v2(name.c_str(), &handle_, flags, nullptr);
  if (handle_ == nullptr) return core::Error{core::Code::resource_exhausted, "out of memory"};
  connected(handle_, file_);
  if (opened != SQLITE_OK) return error();
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_handler(handle_, on_busy, this);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  return core::ok();
}

core::Status JournalDatabase::check_format() {
  const auto application = number("PRAGMA application_id");
  if (!application) return application.error();
  const auto format = number("PRAGMA user_version");
  if (!format) return format.error();
  if (*application == kApplicationId && *format == kFormat) return core::ok();
  return core::Error{core::Code::failed_precondition,
                     *application == kApplicationId
                         ? path_ + " has format " + std::to_string(*format) +
                               ", and this version knows " + std::to_string(kFormat) +
                               ": another version of tocsin made it"
                         : path_ + " is not a file of tocsin (application_id " +
                               std::to_string(*application) + "): name another folder"};
}

core::Result<std::unique_ptr<JournalDatabase>> JournalDatabase::open(const std::string& path,
                                                                     JournalAccess access) {
  const JournalUse use;
  std::unique_ptr<JournalDatabase> database(new JournalDatabase(path));
  const bool writes = access == JournalAccess::write || access == JournalAccess::write_durable;
  // Also a reader opens for writing where it may: it can then recover a log that was left behind.
  const bool still =
      access == JournalAccess::recorded && ::access((path + "-wal").c_str(), F_OK) != 0;
  const bool may_write = !still && ::access(path.c_str(), W_OK) == 0;
  const int flags = writes || may_write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
  if (auto status = database->connect(flags); !status) return status.error();
  if (auto status = database->check_format(); !status) return status.error();
  index_made(database->file_, path);
  // No writer pays for a checkpoint: the keeper makes them. The log shrinks again after a burst.
  std::string settings = "PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=67108864;";
  settings += access == JournalAccess::write_durable ? "PRAGMA synchronous=FULL;"
                                                     : "PRAGMA synchronous=NORMAL;";
  if (!writes) settings += "PRAGMA query_only=1;";
  if (auto status = database->run(settings.c_str()); !status) return status.error();
  database->identity_ = file_identity(path);
  return database;
}

core::Status JournalDatabase::create(const std::string& path, std::string_view schema) {
  if (file_identity(path) != 0) return core::ok();
  const JournalUse use;
  std::error_code ignored;
  if (const auto log = std::filesystem::file_size(path + "-wal", ignored); !ignored && log > 0) {
    return damaged(path, "it is gone, and its log is still there");
  }
  // Made beside and linked, so that nobody sees half of it and two that come together agree.
  static std::atomic<int> drafts{0};
  const std::string draft =
      path + ".new-" + std::to_string(::getpid()) + "-" + std::to_string(++drafts);
  core::Status made = core::ok();
  {
    JournalDatabase database(draft);
    made = database.connect(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (made) {
      const std::string all =
          "PRAGMA synchronous=OFF; PRAGMA page_size=16384; PRAGMA auto_vacuum=INCREMENTAL; BEGIN;"
          "PRAGMA application_id=" +
          std::to_string(kApplicationId) + "; PRAGMA user_version=" + std::to_string(kFormat) +
          ";" + std::string(schema) + "COMMIT; PRAGMA journal_mode=WAL;";
      made = database.run(all.c_str());
    }
  }
  {
    // Closed before the file has its name: closing it would drop the locks of its connections.
    const FileDescriptor whole(::open(draft.c_str(), O_RDONLY | O_CLOEXEC));
    if (made && ::fsync(whole.get()) != 0) made = file_error("syncing", draft, errno);
  }
  if (made && ::link(draft.c_str(), path.c_str()) != 0 && errno != EEXIST) {
    made = file_error("making", path, errno);
  }
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) ::unlink((draft + suffix).c_str());
  return made;
}

core::Result<Statement> JournalDatabase::prepare(std::string_view sql) {
  Statement statement;
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT, &prepared, nullptr) != SQLITE_OK) {
    return error();
  }
  statement.statement_.reset(prepared);
  return statement;
}

core::Status JournalDatabase::run(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error();
  return core::ok();
}

core::Result<std::int64_t> JournalDatabase::number(std::string_view sql, std::int64_t otherwise) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  switch (statement->step()) {
    case SQLITE_ROW:
      return statement->integer(0);
    case SQLITE_DONE:
      return otherwise;
    default:
      return error();
  }
}

bool JournalDatabase::replaced() const { return file_identity(path_) != identity_; }

core::Result<int> JournalDatabase::checkpoint(bool restart) {
  int pages = 0;
  const int mode = restart ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE;
  const int done = sqlite3_wal_checkpoint_v2(handle_, nullptr, mode, &pages, nullptr);
  if (done != SQLITE_OK && (done & 0xFF) != SQLITE_BUSY) return error();
  return pages;
}

}  // namespace tocsin::ingest
