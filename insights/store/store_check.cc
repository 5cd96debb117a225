#include "insights/store/store_check.h"

#include <filesystem>
#include <utility>

#include "insights/store/database.h"
#include "insights/store/kept_record.h"
#include "insights/store/schema.h"

namespace tocsin::insights {

void StoreFindings::note(std::string line) {
  if (notes_.size() < kMostLines) notes_.push_back(std::move(line));
}

void StoreFindings::add(std::string line) {
  if (++count_ <= kMostLines) lines_.push_back(std::move(line));
}

void check_pages(StoreDatabase& database, StoreFindings& out) {
  StoreStatement get = database.prepare("PRAGMA integrity_check(1000)");
  while (get.next()) {
    if (std::string line = get.text(0); line != "ok") out.add(std::move(line));
  }
}

core::Result<std::unique_ptr<StoreDatabase>> open_to_check(const std::string& path,
                                                           std::int64_t application) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return core::not_found(path + ": no such file");
  auto database = StoreDatabase::open(path, false);
  if (!database) return database;
  (*database)->run("BEGIN");
  const std::int64_t whose = (*database)->number("PRAGMA application_id");
  if (auto status = (*database)->failure(); !status) return status.error();
  if (whose != application)
    return core::Error{core::Code::data_loss, path + ": it is no store of ours"};
  return database;
}

core::Result<StoreFindings> check_events(const std::string& path) {
  auto database = open_to_check(path, kStoreId);
  if (!database) return database.error();
  StoreFindings out;
  check_pages(**database, out);
  out.runs = (*database)->number("SELECT count(*) FROM run");
  StoreStatement get = (*database)->prepare("SELECT seq, headers FROM event ORDER BY seq");
  while (get.next()) {
    core::OutRecord record;
    ++out.rows;
    if (!unpack_headers(get.text(1), record))
      out.add("event " + std::to_string(get.integer(0)) + ": its headers cannot be read");
  }
  get = StoreStatement();
  if (auto status = (*database)->failure(); !status) out.add(status.error().message);
  return out;
}

}  // namespace tocsin::insights
