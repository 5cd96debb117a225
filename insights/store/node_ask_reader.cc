#include "insights/store/node_ask_reader.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/topics.h"
#include "insights/store/database.h"

namespace tocsin::insights {
namespace {

constexpr const char* kPhasesOfAgents[] = {"received", "applied", "ended", "refused"};

std::optional<KeptRecord> record_in(StoreDatabase& database, const std::string& slot) {
  StoreStatement get = database.prepare(
      "SELECT topic, part, pos, stamp, key, headers, value FROM event WHERE slot = ?"
      " AND value IS NOT NULL");
  get.bind(1, std::string_view(slot));
  if (!get.next()) return std::nullopt;
  KeptRecord out;
  out.record.topic = get.text(0);
  out.partition = static_cast<std::int32_t>(get.integer(1));
  out.offset = get.integer(2);
  out.timestamp = get.integer(3);
  out.record.key = get.text(4);
  if (!unpack_headers(get.text(5), out.record)) return std::nullopt;
  out.record.value = get.text(6);
  return out;
}

}  // namespace

NodeAskReader::NodeAskReader(std::unique_ptr<StoreDatabase> database)
    : database_(std::move(database)) {}
NodeAskReader::~NodeAskReader() = default;
core::Status NodeAskReader::failure() { return database_->failure(); }

core::Result<std::unique_ptr<NodeAskReader>> NodeAskReader::open(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return core::unavailable("nothing is kept yet");
  auto database = StoreDatabase::open(path, false);
  if (!database) return database.error();
  const std::int64_t version = (*database)->number("PRAGMA user_version");
  if (const auto status = (*database)->failure(); !status) return status.error();
  if (version == 0) return core::unavailable("the store is being made; ask again in a moment");
  return std::unique_ptr<NodeAskReader>(new NodeAskReader(std::move(*database)));
}

// As EventWriter::saw_control() and saw(…, Ack) number them.
std::optional<KeptRecord> NodeAskReader::asked(std::string_view key) {
  return record_in(*database_,
                   std::string("control/") + core::topic::kCommands + "/" + std::string(key));
}

std::optional<KeptRecord> NodeAskReader::answer(const std::string& command_id) {
  std::optional<KeptRecord> newest;
  for (const char* phase : kPhasesOfAgents) {
    auto one = record_in(*database_, "ack/" + command_id + "/0/agent/" + phase);
    if (one && (!newest || one->offset > newest->offset)) newest = std::move(one);
  }
  return newest;
}

}  // namespace tocsin::insights
