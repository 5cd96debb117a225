#include "rules/declared/lexer.h"

#include <array>
#include <charconv>
#include <utility>

namespace tocsin::rules::declared {
namespace {

constexpr std::size_t kLongest = 16384;  // bytes of one text

bool digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Parsed<std::vector<Token>> run() {
    if (text_.size() > kLongest) {
      fail(0, "longer than " + std::to_string(kLongest) + " bytes");
      return std::move(out_);
    }
    while (!out_.problem) {
      while (at_ < text_.size() && space(text_[at_])) ++at_;
      Token token;
      token.at = at_;
      if (at_ == text_.size()) {
        token.end = at_;
        out_.value.push_back(std::move(token));
        break;
      }
      read(token);
      token.end = at_;
      out_.value.push_back(std::move(token));
    }
    return std::move(out_);
  }

 private:
  void fail(std::size_t at, std::string message) {
    if (!out_.problem) out_.problem = Problem{at, std::move(message)};
  }
  [[nodiscard]] char next(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void read(Token& token) {
    const char c = next();
    if (digit(c) || (c == '.' && digit(next(1)))) return number(token);
    if (begins_name(c)) return name(token);
    if (c == '"' || c == '\'') return quoted(token, c);
    token.kind = Token::Kind::symbol;
    for (const std::string_view two : {"<=", ">=", "==", "!=", "=~", "!~"}) {
      if (text_.substr(at_, 2) == two) {
        token.text = two;
        at_ += 2;
        return;
      }
    }
    if (std::string_view("<>=+-*/(){},.%").find(c) == std::string_view::npos) {
      // A character of UTF-8 is shown whole.
      std::size_t size = 1;
      while (at_ + size < text_.size() &&
             (static_cast<unsigned char>(text_[at_ + size]) >> 6) == 2) {
        ++size;
      }
      fail(at_, "unexpected character '" + std::string(text_.substr(at_, size)) + "'" + meant(c));
      at_ = text_.size();
      return;
    }
    token.text = c;
    ++at_;
  }

  // What other languages write with it.
  static const char* meant(char c) {
    return c == '&' ? ": write and" : c == '|' ? ": write or" : c == '!' ? ": write not" : "";
  }

  void number(Token& token) {
    token.kind = Token::Kind::number;
    token.whole = true;
    const std::size_t from = at_;
    while (digit(next())) ++at_;
    if (next() == '.' && digit(next(1))) {
      token.whole = false;
      ++at_;
      while (digit(next())) ++at_;
    }
    const bool sign = next(1) == '+' || next(1) == '-';
    if ((next() == 'e' || next() == 'E') && digit(next(sign ? 2 : 1))) {
      token.whole = false;
      at_ += sign ? 2 : 1;
      while (digit(next())) ++at_;
    }
    const char* const first = text_.data() + from;
    const auto [end, error] = std::from_chars(first, text_.data() + at_, token.number);
    if (error != std::errc{} || end != text_.data() + at_) {
      fail(from, "the number " + std::string(text_.substr(from, at_ - from)) +
                     " does not fit into 64-bit floating point");
    }
  }

  void name(Token& token) {
    token.kind = Token::Kind::name;
    const std::size_t from = at_;
    while (begins_name(next()) || digit(next())) ++at_;
    token.text = text_.substr(from, at_ - from);
  }

  // Only the quote itself is escaped: a backslash of a regular expression stays what it is.
  void quoted(Token& token, char quote) {
    token.kind = Token::Kind::text;
    const std::size_t from = at_++;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && next(1) == quote) ++at_;
      token.text += text_[at_++];
    }
    if (at_ == text_.size()) {
      fail(from, std::string("this text has no closing ") + quote);
    } else {
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Parsed<std::vector<Token>> out_;
};

}  // namespace

Parsed<std::vector<Token>> tokens_of(std::string_view text) { return Lexer(text).run(); }

std::string found(const Token& token) {
  switch (token.kind) {
    case Token::Kind::end:
      return "the end";
    case Token::Kind::name:
      return "the name " + token.text;
    case Token::Kind::number:
      return "a number";
    case Token::Kind::text:
      return "the text \"" + token.text + "\"";
    case Token::Kind::symbol:
      break;
  }
  return "'" + token.text + "'";
}

std::optional<double> in_base_unit(double number, std::string_view unit) {
  // Shares and parts of a second are divided: 57 % is the number that 0.57 is, 57 * 0.01 is not.
  static constexpr std::array<std::pair<std::string_view, double>, 4> kParts{
      {{"%", 1e2}, {"ns", 1e9}, {"us", 1e6}, {"ms", 1e3}}};
  static constexpr std::array<std::pair<std::string_view, double>, 6> kMultiples{
      {{"s", 1}, {"m", 60}, {"h", 3600}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}}};
  for (const auto& [name, parts] : kParts) {
    if (name == unit) return number / parts;
  }
  for (const auto& [name, factor] : kMultiples) {
    if (name == unit) return number * factor;
  }
  return std::nullopt;
}

}  // namespace tocsin::rules::declared
