#include "insights/store/command_reader.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/topics.h"
#include "insights/store/database.h"

namespace tocsin::insights {
namespace {

constexpr const char* kPhasesOfAgents[] = {"received", "applied", "ended", "refused"};

// As EventWriter::saw_control() numbers them.
std::string control_slot(std::string_view key) {
  return std::string("control/") + core::topic::kCommands + "/" + std::string(key);
}

// nullopt: its headers were cut short.
std::optional<KeptRecord> kept_in(StoreStatement& row) {
  KeptRecord out;
  out.record.topic = row.text(0);
  out.partition = static_cast<std::int32_t>(row.integer(1));
  out.offset = row.integer(2);
  out.timestamp = row.integer(3);
  out.record.key = row.text(4);
  if (!unpack_headers(row.text(5), out.record)) return std::nullopt;
  out.record.value = row.text(6);
  return out;
}

std::optional<KeptRecord> record_in(StoreDatabase& database, const std::string& slot) {
  StoreStatement get = database.prepare(
      "SELECT topic, part, pos, stamp, key, headers, value FROM event WHERE slot = ?"
      " AND value IS NOT NULL");
  get.bind(1, std::string_view(slot));
  return get.next() ? kept_in(get) : std::nullopt;
}

std::vector<KeptRecord> records_in(StoreStatement& rows) {
  std::vector<KeptRecord> out;
  while (rows.next()) {
    if (auto one = kept_in(rows)) out.push_back(std::move(*one));
  }
  return out;
}

}  // namespace

CommandReader::CommandReader(std::unique_ptr<StoreDatabase> database)
    : database_(std::move(database)) {}
CommandReader::~CommandReader() = default;
core::Status CommandReader::failure() { return database_->failure(); }

core::Result<std::unique_ptr<CommandReader>> CommandReader::open(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return core::unavailable("nothing is kept yet");
  auto database = StoreDatabase::open(path, false);
  if (!database) return database.error();
  const std::int64_t version = (*database)->number("PRAGMA user_version");
  if (const auto status = (*database)->failure(); !status) return status.error();
  if (version == 0) return core::unavailable("the store is being made; ask again in a moment");
  return std::unique_ptr<CommandReader>(new CommandReader(std::move(*database)));
}

std::optional<KeptRecord> CommandReader::asked(std::string_view key) {
  return record_in(*database_, control_slot(key));
}

std::optional<KeptRecord> CommandReader::answer(const std::string& command_id) {
  std::optional<KeptRecord> newest;
  for (const char* phase : kPhasesOfAgents) {
    auto one = record_in(*database_, "ack/" + command_id + "/0/agent/" + phase);
    if (one && (!newest || one->offset > newest->offset)) newest = std::move(one);
  }
  return newest;
}

std::vector<KeptRecord> CommandReader::commands(std::int64_t until, const std::string& run,
                                                std::size_t most) {
  const std::string what =
      "SELECT topic, part, pos, stamp, key, headers, value FROM event WHERE kind = 'command'"
      " AND time <= ?1 AND value IS NOT NULL" +
      std::string(run.empty() ? "" : " AND run = ?3") + " ORDER BY time DESC LIMIT ?2";
  StoreStatement get = database_->prepare(what.c_str());
  get.bind(1, until).bind(2, static_cast<std::int64_t>(most));
  if (!run.empty()) get.bind(3, std::string_view(run));
  return records_in(get);
}

std::vector<KeptRecord> CommandReader::answers(const std::string& command_id) {
  StoreStatement get = database_->prepare(
      "SELECT topic, part, pos, stamp, key, headers, value FROM event WHERE slot >= ?1 AND slot < "
      "?2"
      " AND value IS NOT NULL ORDER BY time, seq");
  const std::string first = "ack/" + command_id + "/";
  const std::string behind = "ack/" + command_id + "0";  // behind '/'
  get.bind(1, std::string_view(first)).bind(2, std::string_view(behind));
  return records_in(get);
}

std::optional<std::int64_t> CommandReader::withdrawn(std::string_view key) {
  StoreStatement get =
      database_->prepare("SELECT time FROM event WHERE slot = ? AND value IS NULL");
  get.bind(1, std::string_view(control_slot(key)));
  if (!get.next()) return std::nullopt;
  return get.integer(0);
}

}  // namespace tocsin::insights
