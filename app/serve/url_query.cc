#include "app/serve/url_query.h"

#include <algorithm>

#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> unescaped(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> decoded_part(std::string_view text) { return unescaped(text, false); }

core::Result<UrlQuery> UrlQuery::parse(std::string_view text) {
  UrlQuery out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = unescaped(pair.substr(0, equals), true);
    auto value = unescaped(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) {
      return core::invalid_argument("\"" + core::visible(pair) +
                                    "\" has a percent sign without two hexadecimal digits");
    }
    out.pairs_.emplace_back(std::move(*name), std::move(*value));
  }
  return out;
}

std::optional<std::string_view> UrlQuery::value(std::string_view name) const {
  const auto found = std::find_if(pairs_.rbegin(), pairs_.rend(),
                                  [&](const auto& pair) { return pair.first == name; });
  if (found == pairs_.rend()) return std::nullopt;
  return found->second;
}

std::vector<std::string> UrlQuery::values(std::string_view name) const {
  std::vector<std::string> out;
  for (const auto& pair : pairs_) {
    if (pair.first == name) out.push_back(pair.second);
  }
  return out;
}

core::Result<bool> UrlQuery::flag(std::string_view name, bool otherwise) const {
  const auto given = value(name);
  if (!given) return otherwise;
  if (*given == "true") return true;
  if (*given == "false") return false;
  return core::invalid_argument(std::string(name) + ": expected true or false, found \"" +
                                core::visible(*given) + "\"");
}

std::string UrlQuery::first_unknown(std::span<const std::string_view> known) const {
  for (const auto& pair : pairs_) {
    if (std::find(known.begin(), known.end(), pair.first) == known.end()) return pair.first;
  }
  return {};
}

core::Status UrlQuery::only(std::span<const std::string_view> known) const {
  const std::string unknown = first_unknown(known);
  const bool all_known = std::all_of(pairs_.begin(), pairs_.end(), [&](const auto& pair) {
    return std::find(known.begin(), known.end(), pair.first) != known.end();
  });
  if (all_known) return core::ok();
  const std::vector<std::string> names(known.begin(), known.end());
  const std::string near = core::nearest(unknown, names);
  return core::invalid_argument("unknown parameter \"" + core::visible(unknown) + "\"" +
                                (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

}  // namespace tocsin::app
