// A parsed JSON text as one flat list of nodes: what lies inside a node follows it, and each node
// knows where it ends. One pass over the text, no allocation per value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/value.h"

namespace tocsin::core {

class JsonTape {
 public:
  enum class Kind : std::uint8_t { null, boolean, integer, natural, number, text, list, object };

  /// One value. An object's entries are a text (the key) and a value each.
  struct Node {
    Kind kind = Kind::null;
    std::uint32_t after = 0;  // index behind this value and all that it holds
    union {
      std::int64_t integer = 0;  // integer; boolean: 0 or 1
      std::uint64_t natural;     // beyond what an integer holds
      double number;
      struct {
        std::uint32_t at, size;
      } text;
    };
  };

  /// invalid_argument: larger than `max_bytes`, deeper than kMaxJsonDepth, an object with more than
  /// kMaxJsonKeys keys, no JSON (with the place), not UTF-8. Of a key that comes twice the last one
  /// counts.
  static Result<JsonTape> parse(std::string_view text, std::size_t max_bytes);

  [[nodiscard]] const Node& at(std::uint32_t index) const { return nodes_[index]; }
  [[nodiscard]] std::string_view text(const Node& node) const {
    return std::string_view(texts_).substr(node.text.at, node.text.size);
  }
  /// Calls visit(key, index of the value) for each entry of the object at `index`.
  template <typename Visit>
  void each_entry(std::uint32_t index, Visit&& visit) const {
    for (std::uint32_t at = index + 1; at < nodes_[index].after; at = nodes_[at + 1].after) {
      if (nodes_[at].kind == Kind::text) visit(text(nodes_[at]), at + 1);
    }
  }
  /// Calls visit(index) for each item of the list at `index`.
  template <typename Visit>
  void each_item(std::uint32_t index, Visit&& visit) const {
    for (std::uint32_t at = index + 1; at < nodes_[index].after; at = nodes_[at].after) visit(at);
  }
  /// The value at `index`. `numbers`: the texts "NaN", "Infinity", "-Infinity" become numbers,
  /// which is how records write them.
  [[nodiscard]] Value value(std::uint32_t index, bool numbers) const;

 private:
  struct Builder;
  std::vector<Node> nodes_;
  std::string texts_;  // of all text nodes
};

/// The number that the text "NaN", "Infinity" or "-Infinity" stands for.
std::optional<double> special_number(std::string_view text) noexcept;

}  // namespace tocsin::core
