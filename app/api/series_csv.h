// Curves of a run as CSV (RFC 4180): every stored value while it is read, or buckets.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "app/serve/http_routes.h"
#include "insights/insights.h"
#include "insights/series/row_walk.h"

namespace tocsin::app {

inline constexpr const char* kCsvType = "text/csv; charset=utf-8; header=present";

/// Tables of every value: each is sent as it is read, so it takes no more memory however long it is.
/// Thread-safe.
class CsvTables {
 public:
  static constexpr int kMost = 16;  // at a time

  /// 429 where too many are sent already.
  HttpAnswer open(insights::RowWalk walk, const std::string& file);

 private:
  // The streams may outlive the route by a moment.
  std::shared_ptr<std::atomic<int>> open_ = std::make_shared<std::atomic<int>>(0);
};

/// A row for each bucket.
HttpAnswer buckets_as_csv(const insights::SeriesAnswer& answer, bool together, bool smooth,
                          const std::string& file);

/// A field, in quotation marks where it needs them.
void append_csv_text(std::string& out, const std::string& text);

}  // namespace tocsin::app
