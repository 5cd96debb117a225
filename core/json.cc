#include "core/json.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace tocsin::core {
namespace {

using Json = nlohmann::ordered_json;

// Depth is bounded before: the recursion ends.
Value value_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<std::int64_t>();
    case Json::value_t::number_unsigned: {
      const auto whole = json.get<std::uint64_t>();
      if (whole > static_cast<std::uint64_t>(INT64_MAX)) return static_cast<double>(whole);
      return static_cast<std::int64_t>(whole);
    }
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return json.get_ref<const std::string&>();
    case Json::value_t::array: {
      ValueList list;
      list.reserve(json.size());
      for (const Json& item : json) list.push_back(value_of(item));
      return list;
    }
    case Json::value_t::object: {
      ValueMap map;
      map.reserve(json.size());
      for (const auto& [key, item] : json.items()) map.emplace_back(key, value_of(item));
      return map;
    }
    case Json::value_t::null:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return {};
}

}  // namespace

Status check_json_bounds(std::string_view text, std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    return invalid_argument("JSON of " + std::to_string(text.size()) + " bytes; at most " +
                            std::to_string(max_bytes));
  }
  std::array<std::size_t, kMaxJsonDepth + 1> keys{};  // of the objects open now, by depth
  std::size_t depth = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      if (c == '\\') ++i;
      if (c == '"') inside = false;
    } else if (c == '"') {
      inside = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) {
        return invalid_argument("JSON deeper than " + std::to_string(kMaxJsonDepth) + " levels");
      }
      keys[depth] = 0;
    } else if (c == '}' || c == ']') {
      if (depth > 0) --depth;
    } else if (c == ':' && ++keys[depth] > kMaxJsonKeys) {
      return invalid_argument("a JSON object with more than " + std::to_string(kMaxJsonKeys) +
                              " keys");
    }
  }
  return ok();
}

Result<Value> parse_json(std::string_view text, std::size_t max_bytes) {
  if (const Status bounded = check_json_bounds(text, max_bytes); !bounded) return bounded.error();
  try {
    return value_of(Json::parse(text));
  } catch (const Json::exception& e) {
    // The library's own prefix "[json.exception.parse_error.101] " tells the reader nothing.
    const std::string_view words = e.what();
    const std::size_t start = words.find("] ");
    return invalid_argument("not JSON: " +
                            std::string(start == words.npos ? words : words.substr(start + 2)));
  }
}

}  // namespace tocsin::core
