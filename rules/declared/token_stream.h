// The words of one text, taken one after another; the first problem is kept, and nothing goes on behind
// it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"
#include "rules/declared/lexer.h"

namespace tocsin::rules::declared {

class TokenStream {
 public:
  /// `shift`: where the text begins in the one whose places are told.
  explicit TokenStream(std::string_view text, std::size_t shift = 0) : shift_(shift) {
    auto tokens = tokens_of(text);
    tokens_ = std::move(tokens.value);
    if (tokens.problem) fail(tokens.problem->at, std::move(tokens.problem->message));
    if (tokens_.empty() || tokens_.back().kind != Token::Kind::end) {
      tokens_.push_back({Token::Kind::end, text.size(), text.size(), {}, 0, false});
    }
  }

  void end() {
    if (!problem_ && peek().kind != Token::Kind::end) fail(peek().at, unexpected());
  }
  [[nodiscard]] std::optional<Problem> problem() const { return problem_; }

 protected:
  void fail(std::size_t at, std::string message) {
    if (!problem_) problem_ = Problem{at + shift_, std::move(message)};
  }
  [[nodiscard]] const Token& peek() const { return tokens_[next_]; }
  [[nodiscard]] std::size_t behind() const {
    return (next_ > 0 ? tokens_[next_ - 1].end : 0) + shift_;
  }
  static bool reserved(std::string_view name) {
    return name == "and" || name == "or" || name == "not";
  }
  /// The operator that a word is nearly, in whatever case; empty: none.
  static std::string operator_near(std::string word) {
    for (char& c : word) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return core::nearest(word, {"and", "or", "not"});
  }
  [[nodiscard]] std::string unexpected() const {
    const Token& token = peek();
    if (token.kind == Token::Kind::name) {
      std::string near = operator_near(token.text);
      if (near.empty()) near = core::nearest(token.text, {"every"});
      if (!near.empty() && near != token.text) {
        return "unexpected " + found(token) + "; did you mean " + near + "?";
      }
    }
    return "unexpected " + found(token) + ": expected an operator or the end";
  }
  bool word(std::string_view text) {
    if (peek().kind != Token::Kind::name || peek().text != text) return false;
    ++next_;
    return true;
  }
  bool symbol(std::string_view text) {
    if (peek().kind != Token::Kind::symbol || peek().text != text) return false;
    ++next_;
    return true;
  }
  void expect(const char* text) {
    if (problem_ || symbol(text)) return;
    fail(peek().at, std::string("expected '") + text + "', found " + found(peek()));
  }
  Token take(Token::Kind kind, const std::string& what) {
    if (peek().kind == kind) return tokens_[next_++];
    fail(peek().at, "expected " + what + ", found " + found(peek()));
    return {};
  }
  static std::string suggestion(const std::string& wanted, const std::vector<std::string>& known) {
    const std::string near = core::nearest(wanted, known);
    return near.empty() ? "" : "; did you mean " + near + "?";
  }

  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  std::size_t shift_ = 0;
  std::optional<Problem> problem_;
};

}  // namespace tocsin::rules::declared
