// Pages of a list: the newest first, a cursor to the next one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "app/api/api_route.h"
#include "core/result.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

/// The parameters `limit` and `cursor`, for a declaration.
std::vector<ApiParameter> page_parameters();

/// Where a row stands: the newest first, equal times by id.
struct RowKey {
  core::WallTime at{};
  std::string id;
  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};

/// Takes rows in any order and keeps those of one page; memory follows the page, not the list.
class ListPage {
 public:
  /// invalid_argument: a cursor that is none.
  static core::Result<ListPage> of(const UrlQuery& query);

  /// Whether a row of this key may be part of the page; one that may not need not be made.
  [[nodiscard]] bool wants(const RowKey& key) const;
  void add(RowKey key, core::Value row);
  /// {items, next, …}, with the header Link where there is a next page. `more`: further members.
  [[nodiscard]] HttpAnswer answer(const HttpRequest& request, core::ValueMap more = {}) &&;

 private:
  struct Row {
    RowKey key;
    core::Value value;
  };
  std::size_t limit_ = 0;
  bool has_begin_ = false;
  RowKey begin_;           // the last row of the page before
  std::vector<Row> rows_;  // newest first, one more than the limit at most
};

}  // namespace tocsin::app
