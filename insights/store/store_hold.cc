#include "insights/store/store_hold.h"

#include <utility>

#include "insights/store/database.h"

namespace tocsin::insights {

StoreHold::StoreHold() = default;
StoreHold::~StoreHold() = default;

void StoreHold::take(const std::string& path) {
  if (database_) return;
  auto opened = StoreDatabase::open(path, false);
  if (!opened) return;
  (*opened)->number("SELECT count(*) FROM sqlite_master");  // only a read opens the log
  if ((*opened)->failure()) database_ = std::move(*opened);
}

void StoreHold::let_go() { database_.reset(); }

}  // namespace tocsin::insights
