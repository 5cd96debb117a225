#include "app/api/page.h"

#include <algorithm>
#include <charconv>

#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kUsualLimit = 100;
constexpr std::int64_t kMostRows = 1000;

std::string cursor_text(const RowKey& key) {
  return std::to_string(core::nanoseconds(key.at)) + "." + key.id;
}

// As it may stand in a query.
std::string escaped(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_';
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte / 16], kHex[byte % 16]};
    }
  }
  return out;
}

// The same query with another cursor.
std::string query_with(std::string_view query, const std::string& cursor) {
  std::string out;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty() || pair.starts_with("cursor=")) continue;
    const bool safe = pair.find_first_of("<>\"\\ \r\n") == std::string_view::npos;
    if (safe) out += std::string(pair) + "&";
  }
  return out + "cursor=" + escaped(cursor);
}

}  // namespace

std::vector<ApiParameter> page_parameters() {
  ApiParameter limit{"limit", ParameterType::integer, "rows of a page, 100 if not given"};
  limit.least = 1;
  limit.most = kMostRows;
  return {limit, {"cursor", ParameterType::text, "`next` of the page before"}};
}

core::Result<ListPage> ListPage::of(const UrlQuery& query) {
  ListPage out;
  out.limit_ = kUsualLimit;
  if (const auto limit = query.value("limit"))
    std::from_chars(limit->data(), limit->data() + limit->size(), out.limit_);
  const auto cursor = query.value("cursor");
  if (!cursor) return out;
  const std::size_t dot = std::min(cursor->find('.'), cursor->size());
  std::int64_t nanos = 0;
  const char* last = cursor->data() + dot;
  const auto [end, failure] = std::from_chars(cursor->data(), last, nanos);
  if (failure != std::errc{} || end != last || dot == cursor->size()) {
    return core::invalid_argument("cursor: expected `next` of the page before, found \"" +
                                  core::visible(*cursor, 100) + "\"");
  }
  out.has_begin_ = true;
  out.begin_ = {core::wall_time(nanos), std::string(cursor->substr(dot + 1))};
  return out;
}

bool ListPage::wants(const RowKey& key) const {
  if (has_begin_ && key >= begin_) return false;
  return rows_.size() <= limit_ || key > rows_.back().key;
}

void ListPage::add(RowKey key, core::Value row) {
  if (!wants(key)) return;
  const auto place =
      std::find_if(rows_.begin(), rows_.end(), [&](const Row& one) { return one.key < key; });
  rows_.insert(place, {std::move(key), std::move(row)});
  if (rows_.size() > limit_ + 1) rows_.pop_back();
}

HttpAnswer ListPage::answer(const HttpRequest& request, core::ValueMap more) && {
  const bool has_next = rows_.size() > limit_;
  if (has_next) rows_.pop_back();
  core::ValueList items;
  for (Row& row : rows_) items.push_back(std::move(row.value));
  HttpAnswer out;
  core::ValueMap body{{"items", std::move(items)}};
  if (has_next) {
    const std::string cursor = cursor_text(rows_.back().key);
    body.emplace_back("next", cursor);
    out.headers.emplace_back("Link", "<" + std::string(request.path) + "?" +
                                         query_with(request.query, cursor) + ">; rel=\"next\"");
  } else {
    body.emplace_back("next", core::Value());
  }
  for (auto& entry : more) body.push_back(std::move(entry));
  out.body = core::to_json(core::Value(std::move(body))) + "\n";
  return out;
}

}  // namespace tocsin::app
