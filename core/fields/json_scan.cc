#include "core/fields/json_scan.h"

#include <charconv>
#include <cstring>

#include "core/json.h"

namespace tocsin::core {
namespace {

using Node = JsonTape::Node;
using Kind = JsonTape::Kind;

constexpr std::uint64_t kOnes = 0x0101010101010101ULL;
constexpr std::uint64_t kHighs = 0x8080808080808080ULL;

/// Is one of these eight bytes a quote, a backslash, a control character or no ASCII?
bool any_special(std::uint64_t bytes) noexcept {
  const auto zero = [](std::uint64_t word) { return (word - kOnes) & ~word & kHighs; };
  const std::uint64_t control = (bytes - kOnes * 0x20) & ~bytes & kHighs;
  return (zero(bytes ^ (kOnes * '"')) | zero(bytes ^ (kOnes * '\\')) | control |
          (bytes & kHighs)) != 0;
}

bool plain(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

bool digit(char c) noexcept { return c >= '0' && c <= '9'; }

class Scanner {
 public:
  Scanner(std::string_view text, std::vector<Node>& nodes, std::string& texts)
      : at_(text.data()), end_(text.data() + text.size()), nodes_(nodes), texts_(texts) {}

  bool whole() {
    if (!value(0)) return false;
    skip_space();
    return at_ == end_;
  }

 private:
  void skip_space() noexcept {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  [[nodiscard]] bool next_is(char c) const noexcept { return at_ != end_ && *at_ == c; }
  bool take(char c) noexcept {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) noexcept {
    if (static_cast<std::size_t>(end_ - at_) < word.size()) return false;
    if (std::memcmp(at_, word.data(), word.size()) != 0) return false;
    at_ += word.size();
    return true;
  }
  Node& add(Kind kind) {
    Node& node = nodes_.emplace_back();
    node.kind = kind;
    node.after = static_cast<std::uint32_t>(nodes_.size());
    return node;
  }

  bool value(std::size_t depth) {
    skip_space();
    if (at_ == end_) return false;
    switch (*at_) {
      case '"':
        return text();
      case '{':
        return object(depth);
      case '[':
        return list(depth);
      case 't':
        return take("true") && (add(Kind::boolean).integer = 1, true);
      case 'f':
        return take("false") && (add(Kind::boolean).integer = 0, true);
      case 'n':
        return take("null") && (add(Kind::null), true);
      default:
        return number();
    }
  }

  bool object(std::size_t depth) {
    if (depth == kMaxJsonDepth) return false;
    ++at_;
    const std::size_t self = nodes_.size();
    add(Kind::object);
    std::uint64_t seen = 0;
    std::size_t keys = 0;
    skip_space();
    if (!take('}')) {
      do {
        skip_space();
        if (++keys > kMaxJsonKeys || !next_is('"') || !text() || repeated(self, seen)) return false;
        skip_space();
        if (!take(':') || !value(depth + 1)) return false;
        skip_space();
      } while (take(','));
      if (!take('}')) return false;
    }
    nodes_[self].after = static_cast<std::uint32_t>(nodes_.size());
    return true;
  }

  bool list(std::size_t depth) {
    if (depth == kMaxJsonDepth) return false;
    ++at_;
    const std::size_t self = nodes_.size();
    add(Kind::list);
    skip_space();
    if (!take(']')) {
      do {
        if (!value(depth + 1)) return false;
        skip_space();
      } while (take(','));
      if (!take(']')) return false;
    }
    nodes_[self].after = static_cast<std::uint32_t>(nodes_.size());
    return true;
  }

  /// Is the newest node a key that this object has already? `seen` has a bit per key as it looks
  /// from far.
  bool repeated(std::size_t self, std::uint64_t& seen) const {
    const Node& key = nodes_.back();
    const std::string_view name(texts_.data() + key.text.at, key.text.size);
    const std::size_t far = name.empty()
                                ? 0
                                : name.size() * 7 + static_cast<unsigned char>(name.front()) * 31U +
                                      static_cast<unsigned char>(name.back()) * 17U +
                                      static_cast<unsigned char>(name[name.size() / 2]);
    const std::uint64_t bit = std::uint64_t{1} << (far % 64);
    if ((seen & bit) == 0) return seen |= bit, false;
    for (std::size_t at = self + 1; at + 1 < nodes_.size(); at = nodes_[at + 1].after) {
      const Node& other = nodes_[at];
      if (other.text.size == name.size() &&
          std::string_view(texts_.data() + other.text.at, other.text.size) == name) {
        return true;
      }
    }
    return false;
  }

  bool text() {
    ++at_;
    const std::size_t start = texts_.size();
    for (;;) {
      const char* const from = at_;
      std::uint64_t bytes = 0;
      while (end_ - at_ >= 8) {
        std::memcpy(&bytes, at_, 8);
        if (any_special(bytes)) break;
        at_ += 8;
      }
      while (at_ != end_ && plain(*at_)) ++at_;
      texts_.append(from, at_);
      if (at_ == end_) return false;
      if (*at_ == '"') break;
      if (*at_ != '\\' || !escape()) return false;
    }
    ++at_;
    const std::string_view found(texts_.data() + start, texts_.size() - start);
    add(Kind::text).text = {static_cast<std::uint32_t>(start),
                            static_cast<std::uint32_t>(found.size())};
    return true;
  }

  bool escape() {
    if (end_ - at_ < 2) return false;
    const char what = at_[1];
    at_ += 2;
    switch (what) {
      case '"':
      case '\\':
      case '/':
        texts_ += what;
        return true;
      case 'n':
        texts_ += '\n';
        return true;
      case 't':
        texts_ += '\t';
        return true;
      case 'r':
        texts_ += '\r';
        return true;
      case 'b':
        texts_ += '\b';
        return true;
      case 'f':
        texts_ += '\f';
        return true;
      default:
        return false;  // \u: the library knows about surrogates
    }
  }

  bool number() {
    const char* const from = at_;
    const bool minus = take('-');
    if (at_ == end_ || !digit(*at_)) return false;
    if (*at_ == '0') {
      ++at_;
    } else {
      while (at_ != end_ && digit(*at_)) ++at_;
    }
    const bool whole = at_ == end_ || (*at_ != '.' && *at_ != 'e' && *at_ != 'E');
    if (whole) {
      std::int64_t found = 0;
      if (std::from_chars(from, at_, found).ec != std::errc{}) return false;
      if (minus && found == 0) return false;  // "-0"
      add(Kind::integer).integer = found;
      return true;
    }
    if (take('.') && !some_digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!some_digits()) return false;
    }
    double found = 0;
    if (std::from_chars(from, at_, found).ec != std::errc{}) return false;
    add(Kind::number).number = found;
    return true;
  }
  bool some_digits() noexcept {
    const char* const from = at_;
    while (at_ != end_ && digit(*at_)) ++at_;
    return at_ != from;
  }

  const char* at_;
  const char* end_;
  std::vector<Node>& nodes_;
  std::string& texts_;
};

}  // namespace

bool scan_json(std::string_view text, std::vector<JsonTape::Node>& nodes, std::string& texts) {
  return Scanner(text, nodes, texts).whole();
}

}  // namespace tocsin::core
