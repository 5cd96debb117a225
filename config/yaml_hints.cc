#include "config/yaml_hints.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace tocsin::config {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.push_back(line);
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

/// What opens and is not closed, or closes what was not opened.
struct Unbalanced {
  Location at;
  char sign = '\0';
  bool closes = false;
};

/// Walks the file as far as brackets, quotes and comments go.
class BracketWalk {
 public:
  explicit BracketWalk(std::string file) : file_(std::move(file)) {}

  std::optional<Unbalanced> run(const std::vector<std::string_view>& lines, int last) {
    for (std::size_t i = 0; i < lines.size() && static_cast<int>(i) < last; ++i) {
      if (in_block(lines[i])) continue;
      line_ = static_cast<int>(i) + 1;
      if (auto found = walk(lines[i])) return found;
    }
    if (quote_ != '\0') return Unbalanced{quote_at_, quote_, false};
    if (!open_.empty()) return open_.back();
    return std::nullopt;
  }

 private:
  // Text behind `key: |` is nobody's syntax.
  bool in_block(std::string_view line) {
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos) return block_ >= 0;
    if (block_ >= 0 && static_cast<int>(indent) > block_) return true;
    block_ = -1;
    const std::size_t end = line.find_last_not_of(" -+0123456789");
    const bool begins = quote_ == '\0' && open_.empty() && end != std::string_view::npos &&
                        (line[end] == '|' || line[end] == '>') && end > 0 && line[end - 1] == ' ';
    if (begins) block_ = static_cast<int>(indent);
    return false;
  }

  [[nodiscard]] Location here(std::size_t i) const {
    return {file_, line_, static_cast<int>(i) + 1};
  }

  // True: the character behind it is escaped.
  bool in_quotes(char c) {
    if (c == '\\' && quote_ == '"') return true;
    if (c == quote_) quote_ = '\0';
    return false;
  }

  std::optional<Unbalanced> walk(std::string_view line) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (quote_ != '\0') {
        if (in_quotes(c)) ++i;
        continue;
      }
      const char before = i == 0 ? ' ' : line[i - 1];
      const bool begins_value = std::string_view(" [{,").find(before) != std::string_view::npos;
      if (c == '#' && before == ' ') return std::nullopt;
      if ((c == '"' || c == '\'') && begins_value) {
        quote_ = c;
        quote_at_ = here(i);
      } else if ((c == '[' || c == '{') && (begins_value || !open_.empty())) {
        open_.push_back({here(i), c, false});
      } else if ((c == ']' || c == '}') && !open_.empty()) {
        if (open_.back().sign != (c == ']' ? '[' : '{')) return open_.back();
        open_.pop_back();
      }
    }
    return std::nullopt;
  }

  std::string file_;
  int line_ = 0;
  int block_ = -1;  // indentation of the key whose block scalar this is
  char quote_ = '\0';
  Location quote_at_;
  std::vector<Unbalanced> open_;
};

std::optional<YamlFault> tab_fault(const std::vector<std::string_view>& lines,
                                   const Location& where) {
  for (std::size_t i = 0; i < lines.size() && static_cast<int>(i) < where.line; ++i) {
    const std::size_t indent = lines[i].find_first_not_of(" \t");
    const std::size_t tab = lines[i].find('\t');
    if (indent == std::string_view::npos || tab >= indent) continue;
    return YamlFault{{where.file, static_cast<int>(i) + 1, static_cast<int>(tab) + 1},
                     "a tab indents this line; indent it with spaces"};
  }
  return std::nullopt;
}

/// `key: a value: with a colon`: where the second colon stands, and the value.
struct Colon {
  std::size_t at = 0;
  std::string_view value;
};

std::optional<Colon> second_colon(std::string_view line) {
  const std::size_t first = line.find(": ");
  if (first == std::string_view::npos) return std::nullopt;
  std::size_t begin = line.find_first_not_of(' ', first + 1);
  if (begin == std::string_view::npos || line[begin] == '"' || line[begin] == '\'' ||
      line[begin] == '{' || line[begin] == '[') {
    return std::nullopt;
  }
  const std::size_t comment = std::min(line.find(" #", begin), line.size());
  const std::string_view value = line.substr(begin, comment - begin);
  const std::size_t second =
      std::min(value.find(": "), value.ends_with(':') ? value.size() - 1 : value.npos);
  if (second == std::string_view::npos) return std::nullopt;
  return Colon{begin + second, value};
}

std::optional<YamlFault> colon_fault(const std::vector<std::string_view>& lines,
                                     const Location& where) {
  // The parser stumbles at the colon, or at the line behind it.
  for (int line = where.line; line >= std::max(1, where.line - 1); --line) {
    if (line > static_cast<int>(lines.size())) continue;
    const auto colon = second_colon(lines[static_cast<std::size_t>(line) - 1]);
    if (!colon) continue;
    return YamlFault{{where.file, line, static_cast<int>(colon->at) + 1},
                     "a colon inside an unquoted value; put the value in quotes: '" +
                         std::string(colon->value) + "'"};
  }
  return std::nullopt;
}

// "journal:x": without a blank it is a text, no key.
std::optional<YamlFault> blank_fault(const std::vector<std::string_view>& lines,
                                     const Location& where) {
  for (int line = where.line; line >= std::max(1, where.line - 1); --line) {
    if (line > static_cast<int>(lines.size())) continue;
    const std::string_view text = lines[static_cast<std::size_t>(line) - 1];
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos || colon + 1 >= text.size() || text[colon + 1] == ' ' ||
        text.find(": ") != std::string_view::npos || text[colon + 1] == '/') {
      continue;
    }
    return YamlFault{{where.file, line, static_cast<int>(colon) + 2},
                     "no space after the colon of a key; write `" +
                         std::string(text.substr(0, colon + 1)) + " " +
                         std::string(text.substr(colon + 1)) + "`"};
  }
  return std::nullopt;
}

std::optional<YamlFault> sign_fault(const std::vector<std::string_view>& lines,
                                    const Location& where, const std::string& why) {
  if (where.line < 1 || where.line > static_cast<int>(lines.size())) return std::nullopt;
  const std::string_view line = lines[static_cast<std::size_t>(where.line) - 1];
  const bool anchor =
      why.find("alias") != std::string::npos || why.find("anchor") != std::string::npos;
  std::size_t at = static_cast<std::size_t>(std::max(where.column - 1, 0));
  if (anchor) {
    at = line.find_last_of("*&", std::min(at, line.size()));
    if (at == std::string_view::npos) at = line.find_first_of("*&");
  } else if (why != "unknown token") {
    return std::nullopt;
  }
  if (at >= line.size()) return std::nullopt;
  return YamlFault{
      {where.file, where.line, static_cast<int>(at) + 1},
      "a value may not begin with \"" + std::string(1, line[at]) + "\"; put it in quotes"};
}

std::string closing(char sign) {
  return sign == '[' ? "]" : sign == '{' ? "}" : std::string(1, sign);
}

std::optional<YamlFault> bracket_fault(const std::vector<std::string_view>& lines,
                                       const Location& where) {
  const auto found = BracketWalk(where.file).run(lines, static_cast<int>(lines.size()));
  if (!found) return std::nullopt;
  const bool quote = found->sign == '"' || found->sign == '\'';
  return YamlFault{found->at, std::string(quote ? "a quote" : "\"") +
                                  (quote ? "" : std::string(1, found->sign) + "\"") +
                                  " is never closed; add " + closing(found->sign) +
                                  " where it ends"};
}

}  // namespace

Lines::Lines(std::string_view text) : text_(text), begin_{0} {
  for (std::size_t at = text.find('\n'); at != std::string_view::npos;
       at = text.find('\n', at + 1)) {
    begin_.push_back(at + 1);
  }
}

bool Lines::quote_is_closed(const Location& where) const {
  if (where.line < 1 || where.line > static_cast<int>(begin_.size())) return true;
  const auto line = static_cast<std::size_t>(where.line) - 1;
  const std::size_t at = begin_[line] + static_cast<std::size_t>(std::max(where.column - 1, 0));
  const std::size_t end = line + 1 < begin_.size() ? begin_[line + 1] : text_.size();
  if (at >= end || (text_[at] != '"' && text_[at] != '\'')) return true;
  const char quote = text_[at];
  for (std::size_t i = at + 1; i < text_.size(); ++i) {
    if (text_[i] == '\\' && quote == '"') {
      ++i;
    } else if (text_[i] == quote) {
      return true;
    }
  }
  return false;
}

YamlFault explain_yaml(std::string_view text, const Location& where, const std::string& why) {
  const auto lines = lines_of(text);
  if (auto tab = tab_fault(lines, where)) return *std::move(tab);
  if (auto bracket = bracket_fault(lines, where)) return *std::move(bracket);
  if (why == "illegal flow end" || why.find("flow") != std::string::npos) {
    return {where, "\"]\" or \"}\" closes nothing, or a value with brackets lacks quotes"};
  }
  if (auto sign = sign_fault(lines, where, why)) return *std::move(sign);
  if (auto colon = colon_fault(lines, where)) return *std::move(colon);
  if (auto blank = blank_fault(lines, where)) return *std::move(blank);
  if (why.starts_with("end of map") || why.starts_with("end of seq") ||
      why.starts_with("illegal")) {
    return {where, "the indentation of this line matches no line above it (" + why +
                       "); check that keys of one map are indented alike, and end in a colon"};
  }
  return {where, why};
}

}  // namespace tocsin::config
