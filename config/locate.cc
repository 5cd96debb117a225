// Where one character of a scalar stands: the text that YAML has made of it is laid along the bytes of
// the file again.
#include <algorithm>

#include "config/node.h"

namespace tocsin::config {
namespace {

bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// First byte of the line and column.
std::size_t index_of(const std::string& source, const Location& location) {
  std::size_t at = source.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  for (int line = 1; line < location.line; ++line) {
    const std::size_t end = source.find('\n', at);
    if (end == std::string::npos) return source.size();
    at = end + 1;
  }
  return std::min(at + static_cast<std::size_t>(std::max(location.column - 1, 0)), source.size());
}

/// A scalar's bytes in the file, from its quote or block sign on.
class Walk {
 public:
  Walk(const std::string& source, std::size_t at, char style)
      : source_(source), at_(at), style_(style) {}

  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  void skip_blanks() {
    while (at_ < source_.size() && blank(source_[at_])) ++at_;
  }
  [[nodiscard]] bool on_blank() const { return at_ < source_.size() && blank(source_[at_]); }
  /// Steps over what stands for `c`; false: something else does.
  bool over(char c) {
    if (style_ == '"' && next(0) == '\\') {
      if (next(1) != c || (c != '"' && c != '\\' && c != '/')) return false;
      at_ += 2;
      return true;
    }
    if (next(0) != c) return false;
    at_ += style_ == '\'' && c == '\'' ? 2 : 1;
    return true;
  }

 private:
  [[nodiscard]] char next(std::size_t ahead) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  const std::string& source_;
  std::size_t at_;
  char style_;
};

// Line and column of a place of the source, in the file of `like`.
Location location_at(const std::string& source, std::size_t at, const Location& like) {
  Location out = like;
  const std::size_t line_start = source.rfind('\n', at == 0 ? 0 : at - 1);
  const std::size_t begin = at == 0 || line_start == std::string::npos ? 0 : line_start + 1;
  out.line = 1 + static_cast<int>(std::count(
                     source.begin(), source.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  out.column = static_cast<int>(at - begin) + 1;
  return out;
}

}  // namespace

Location Node::location_of(std::size_t offset) const {
  if (substituted || source == nullptr || location.line == 0) return location;
  std::size_t first = index_of(*source, location);
  if (first >= source->size()) return location;
  const char style = (*source)[first];
  if (style == '"' || style == '\'') {
    ++first;
  } else if (style == '|' || style == '>') {
    first = std::min(source->find('\n', first), source->size());
  }
  Walk walk(*source, first, style);
  const std::size_t wanted = std::min(offset, text.size());
  for (std::size_t i = 0; i < wanted;) {
    if (blank(text[i])) {  // lines may have been folded: blanks stand for blanks
      if (!walk.on_blank()) return location;
      while (i < wanted && blank(text[i])) ++i;
      walk.skip_blanks();
    } else {
      if (walk.on_blank()) walk.skip_blanks();
      if (!walk.over(text[i])) return location;
      ++i;
    }
  }
  if (wanted < text.size() && !blank(text[wanted])) walk.skip_blanks();
  return location_at(*source, walk.at(), location);
}

}  // namespace tocsin::config
