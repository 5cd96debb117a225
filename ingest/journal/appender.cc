#include "ingest/journal/appender.h"

#include <utility>

#include "ingest/journal/headers.h"

namespace tocsin::ingest {
namespace {

// 64 MiB: with a keeper alive the log never gets there.
constexpr int kCheckpointPages = 4096;
constexpr int kNextTryPages = 1024;

}  // namespace

core::Result<std::unique_ptr<JournalAppender>> JournalAppender::open(const std::string& path,
                                                                     JournalAccess access) {
  auto database = JournalDatabase::open(path, access);
  if (!database) return database.error();
  return std::unique_ptr<JournalAppender>(new JournalAppender(std::move(*database)));
}

JournalAppender::JournalAppender(std::unique_ptr<JournalDatabase> database)
    : database_(std::move(database)), next_checkpoint_(kCheckpointPages) {
  sqlite3_wal_hook(
      database_->handle(),
      [](void* self, sqlite3*, const char*, int pages) {
        static_cast<JournalAppender*>(self)->log_pages_ = pages;
        return SQLITE_OK;
      },
      this);
}

core::Status JournalAppender::begin(std::chrono::milliseconds longest_wait) {
  if (database_->replaced()) {
    return core::Error{core::Code::failed_precondition,
                       "journal file " + database_->path() + " was removed or replaced"};
  }
  database_->wait_for_locks(longest_wait);
  if (auto made = prepare(begin_, "BEGIN IMMEDIATE"); !made) return made;
  return step(begin_);
}

/// Once: parsing takes as long as a small insert.
core::Status JournalAppender::prepare(Statement& kept, std::string_view sql) {
  if (kept) return core::ok();
  auto statement = database_->prepare(sql);
  if (!statement) return statement.error();
  kept = std::move(*statement);
  return core::ok();
}

core::Status JournalAppender::step(Statement& statement) {
  const StatementScope scope(statement);
  const int result = statement.step();
  if (result != SQLITE_ROW && result != SQLITE_DONE) return database_->error();
  return core::ok();
}

core::Result<JournalAppender::Tail*> JournalAppender::tail(const JournalTopic& topic) {
  auto found = tails_.find(topic.name);
  if (found == tails_.end()) {
    const std::string verb = topic.compacted ? "INSERT OR REPLACE INTO " : "INSERT INTO ";
    auto insert = database_->prepare(verb + topic.table + " VALUES(?, ?, ?, ?, ?)");
    if (!insert) return insert.error();
    found = tails_.emplace(topic.name, Tail{}).first;
    found->second.insert = std::move(*insert);
  }
  Tail& tail = found->second;
  if (!std::exchange(tail.touched, true)) {
    auto made = prepare(read_next_, "SELECT next FROM topic WHERE name = ?");
    if (!made) return made.error();
    const StatementScope scope(read_next_);
    if (read_next_.bind(1, topic.name).step() != SQLITE_ROW) return database_->error();
    tail.next = read_next_.integer(0);
  }
  return &tail;
}

core::Status JournalAppender::append(const JournalTopic& topic, const core::OutRecord& record,
                                     std::int64_t now) {
  auto at = tail(topic);
  if (!at) return at.error();
  const auto headers = pack_headers(record.headers);
  if (!headers) return core::invalid_argument("a header of " + topic.name + " is too long");
  using Bytes = std::optional<std::string_view>;
  Statement& insert = (*at)->insert;
  insert.bind(1, (*at)->next).bind(2, record.timestamp == 0 ? now : record.timestamp);
  insert.bind_blob(3, record.key.empty() ? std::nullopt : Bytes(record.key));
  insert.bind_blob(4, record.value ? Bytes(*record.value) : std::nullopt);
  insert.bind_blob(5, headers->empty() ? std::nullopt : Bytes(*headers));
  if (auto status = step(insert); !status) return status;
  ++(*at)->next;
  return core::ok();
}

core::Status JournalAppender::set_position(std::string_view consumer, std::string_view topic,
                                           std::int64_t next) {
  if (auto made = prepare(position_, "INSERT OR REPLACE INTO position VALUES(?, ?, ?)"); !made) {
    return made;
  }
  return step(position_.bind(1, consumer).bind(2, topic).bind(3, next));
}

core::Status JournalAppender::write_tails() {
  for (auto& [name, tail] : tails_) {
    if (!tail.touched) continue;
    auto made = prepare(write_next_, "UPDATE topic SET next = ? WHERE name = ?");
    if (!made) return made;
    if (auto status = step(write_next_.bind(1, tail.next).bind(2, name)); !status) return status;
  }
  return core::ok();
}

core::Status JournalAppender::commit() {
  auto status = write_tails();
  if (status) status = prepare(commit_, "COMMIT");
  if (status) status = step(commit_);
  if (!status) {
    rollback();
    return status;
  }
  for (auto& [name, tail] : tails_) tail.touched = false;
  if (log_pages_ < kCheckpointPages) next_checkpoint_ = kCheckpointPages;
  if (log_pages_ >= next_checkpoint_) {
    // No keeper lives. That it fails harms nobody: the log only grows.
    (void)database_->checkpoint();
    next_checkpoint_ = log_pages_ + kNextTryPages;
  }
  return core::ok();
}

void JournalAppender::rollback() {
  if (sqlite3_get_autocommit(database_->handle()) == 0) (void)database_->run("ROLLBACK");
  for (auto& [name, tail] : tails_) tail.touched = false;
}

}  // namespace tocsin::ingest
