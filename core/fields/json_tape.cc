#include "core/fields/json_tape.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/fields/json_scan.h"
#include "core/json.h"

namespace tocsin::core {

// What the library's parser finds, in order. It keeps no stack of ours: the depth is bounded here.
struct JsonTape::Builder {
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  explicit Builder(JsonTape& tape) : out(tape) {}

  Node& add(Kind kind) {
    Node& node = out.nodes_.emplace_back();
    node.kind = kind;
    node.after = static_cast<std::uint32_t>(out.nodes_.size());
    return node;
  }
  Node& add_text(const std::string& text) {
    Node& node = add(Kind::text);
    node.text = {static_cast<std::uint32_t>(out.texts_.size()),
                 static_cast<std::uint32_t>(text.size())};
    out.texts_ += text;
    return node;
  }
  bool open(Kind kind) {
    if (open_nodes.size() == kMaxJsonDepth) {
      return stop("JSON deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    }
    open_nodes.push_back({static_cast<std::uint32_t>(out.nodes_.size()), 0});
    add(kind);
    return true;
  }
  bool close() {
    out.nodes_[open_nodes.back().index].after = static_cast<std::uint32_t>(out.nodes_.size());
    open_nodes.pop_back();
    return true;
  }
  bool stop(std::string why) {
    problem = std::move(why);
    return false;
  }
  /// An earlier entry of this name is no longer one.
  void drop_earlier(const std::string& name) {
    const auto end = static_cast<std::uint32_t>(out.nodes_.size());
    for (std::uint32_t at = open_nodes.back().index + 1; at < end; at = out.nodes_[at + 1].after) {
      Node& key = out.nodes_[at];
      if (key.kind == Kind::text && key.text.size == name.size() && out.text(key) == name) {
        key.kind = Kind::null;
      }
    }
  }

  // The parser's events (nlohmann::json_sax).
  bool null() { return add(Kind::null), true; }
  bool boolean(bool flag) { return add(Kind::boolean).integer = flag ? 1 : 0, true; }
  bool number_integer(number_integer_t number) { return add(Kind::integer).integer = number, true; }
  bool number_unsigned(number_unsigned_t number) {
    if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return number_integer(static_cast<std::int64_t>(number));
    }
    return add(Kind::natural).natural = number, true;
  }
  bool number_float(number_float_t number, const string_t& /*text*/) {
    return add(Kind::number).number = number, true;
  }
  bool string(const string_t& text) { return add_text(text), true; }
  bool binary(const binary_t& /*bytes*/) { return stop("not JSON: binary"); }
  bool start_object(std::size_t /*size*/) { return open(Kind::object); }
  bool end_object() { return close(); }
  bool start_array(std::size_t /*size*/) { return open(Kind::list); }
  bool end_array() { return close(); }
  bool key(const string_t& name) {
    if (++open_nodes.back().keys > kMaxJsonKeys) {
      return stop("a JSON object with more than " + std::to_string(kMaxJsonKeys) + " keys");
    }
    drop_earlier(name);
    add_text(name);
    return true;
  }
  bool parse_error(std::size_t /*place*/, const std::string& /*token*/,
                   const nlohmann::json::exception& error) {
    // The library's own prefix "[json.exception.parse_error.101] " tells the reader nothing.
    const std::string_view words = error.what();
    const std::size_t start = words.find("] ");
    return stop("not JSON: " + std::string(start == words.npos ? words : words.substr(start + 2)));
  }

  struct Open {
    std::uint32_t index;
    std::size_t keys;
  };
  JsonTape& out;
  std::vector<Open> open_nodes;
  std::string problem;
};

Result<JsonTape> JsonTape::parse(std::string_view text, std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    return invalid_argument("JSON of " + std::to_string(text.size()) + " bytes; at most " +
                            std::to_string(max_bytes));
  }
  JsonTape out;
  out.nodes_.reserve(text.size() / 12 + 1);
  out.texts_.reserve(text.size());
  if (scan_json(text, out.nodes_, out.texts_)) return out;
  out.nodes_.clear();
  out.texts_.clear();
  Builder builder(out);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    return invalid_argument(std::move(builder.problem));
  }
  return out;
}

Value JsonTape::value(std::uint32_t index, bool numbers) const {
  const Node& node = nodes_[index];
  switch (node.kind) {
    case Kind::null:
      break;
    case Kind::boolean:
      return node.integer != 0;
    case Kind::integer:
      return node.integer;
    case Kind::natural:
      return static_cast<double>(node.natural);
    case Kind::number:
      return node.number;
    case Kind::text: {
      if (const auto number = numbers ? special_number(text(node)) : std::nullopt) return *number;
      return std::string(text(node));
    }
    case Kind::list: {
      ValueList list;
      each_item(index, [&](std::uint32_t item) { list.push_back(value(item, numbers)); });
      return list;
    }
    case Kind::object: {
      ValueMap map;
      each_entry(index, [&](std::string_view key, std::uint32_t item) {
        map.emplace_back(key, value(item, numbers));
      });
      return map;
    }
  }
  return {};
}

std::optional<double> special_number(std::string_view text) noexcept {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

}  // namespace tocsin::core
