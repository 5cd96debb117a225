#include "routing/tree/matchers.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "core/text.h"

namespace tocsin::routing {

struct Matchers::Compiled {
  std::vector<Term> terms;
  std::vector<std::unique_ptr<re2::RE2>> regexes;  // null for = and !=
};

namespace {

using core::Result;
using core::Status;

// Not allowed in a value without quotes.
constexpr std::string_view kSpecial = "{}!=~,\\\"'";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return starts_name(c) || (c >= '0' && c <= '9'); }

/// Reads terms from one text; `at_` is the next byte.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Status parse(std::vector<Matchers::Term>& out) {
    if (const auto bad = core::first_invalid_utf8(text_)) return expected(*bad, "valid UTF-8");
    skip_spaces();
    const bool braced = take('{');
    const auto at_end = [&] { return braced ? peek() == '}' : at_ >= text_.size(); };
    skip_spaces();
    while (!at_end()) {
      if (Status status = term(out); !status) return status;
      skip_spaces();
      if (at_end()) break;
      if (!take(',')) return expected(at_, braced ? "a comma or }" : "a comma or the end");
      skip_spaces();
    }
    if (braced) {
      if (!take('}')) return expected(at_, "}");
      skip_spaces();
      if (at_ < text_.size()) return expected(at_, "nothing after }");
    }
    return core::ok();
  }

 private:
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  [[nodiscard]] core::Error expected(std::size_t byte, std::string_view what) const {
    const std::size_t character = core::count_code_points(text_.substr(0, byte)) + 1;
    std::string message = "expected " + std::string(what) + " at character " +
                          std::to_string(character) + " of '" + std::string(text_) + "'";
    return core::invalid_argument(std::move(message));
  }

  Status term(std::vector<Matchers::Term>& out) {
    Matchers::Term term;
    if (Status status = name(term.name); !status) return status;
    skip_spaces();
    const auto op = operation();
    if (!op) return expected(at_, "one of = != =~ !~");
    term.op = *op;
    skip_spaces();
    if (Status status = value(term.value); !status) return status;
    out.push_back(std::move(term));
    return core::ok();
  }

  Status name(std::string& out) {
    const std::size_t start = at_;
    if (peek() == '"') {
      if (Status status = quoted(out); !status) return status;
      if (out.empty()) return expected(start, "a label name of at least one character");
      if (out.find('\0') != std::string::npos) return expected(start, "a label name without NUL");
      return core::ok();
    }
    if (!starts_name(peek())) {
      return expected(at_, "a label name (names outside [a-zA-Z_][a-zA-Z0-9_]* need quotes)");
    }
    while (continues_name(peek())) ++at_;
    out = text_.substr(start, at_ - start);
    return core::ok();
  }

  std::optional<MatchOperator> operation() {
    if (take('=')) return take('~') ? MatchOperator::regex : MatchOperator::equal;
    if (peek() == '!' && at_ + 1 < text_.size()) {
      if (text_[at_ + 1] == '=') return at_ += 2, MatchOperator::not_equal;
      if (text_[at_ + 1] == '~') return at_ += 2, MatchOperator::not_regex;
    }
    return std::nullopt;
  }

  Status value(std::string& out) {
    if (peek() == '"') return quoted(out);
    const std::size_t start = at_;
    while (at_ < text_.size() && !is_space(text_[at_]) &&
           kSpecial.find(text_[at_]) == std::string_view::npos) {
      ++at_;
    }
    if (at_ == start) return expected(at_, "a value (write \"\" for an empty one)");
    out = text_.substr(start, at_ - start);
    return core::ok();
  }

  /// A backslash before anything but \ " n t r stays, so that "a\.b" is a regex as it reads.
  Status quoted(std::string& out) {
    const std::size_t start = at_++;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return core::ok();
      if (c != '\\' || at_ >= text_.size()) {
        out += c;
        continue;
      }
      const char escaped = text_[at_++];
      switch (escaped) {
        case '\\':
        case '"':
          out += escaped;
          break;
        case 'n':
          out += '\n';
          break;
        case 't':
          out += '\t';
          break;
        case 'r':
          out += '\r';
          break;
        default:
          out += '\\';
          out += escaped;
      }
    }
    return expected(text_.size(),
                    "a closing quote for the one at character " +
                        std::to_string(core::count_code_points(text_.substr(0, start)) + 1));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool is_regex(MatchOperator op) {
  return op == MatchOperator::regex || op == MatchOperator::not_regex;
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '"':
        out += "\\\"";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        out += c;
    }
  }
  return out + '"';
}

}  // namespace

std::string to_text(const Matchers::Term& term) {
  constexpr std::array<std::string_view, 4> kOperators{"=", "!=", "=~", "!~"};
  const bool plain = !term.name.empty() && starts_name(term.name.front()) &&
                     std::all_of(term.name.begin(), term.name.end(), continues_name);
  std::string out = plain ? term.name : quote(term.name);
  out += kOperators[static_cast<std::size_t>(term.op)];
  return out + quote(term.value);
}

Matchers::Matchers() : compiled_(std::make_shared<const Compiled>()) {}

Result<Matchers> Matchers::parse(std::string_view text) {
  return parse(std::vector<std::string>{std::string(text)});
}

Result<Matchers> Matchers::parse(const std::vector<std::string>& texts) {
  auto compiled = std::make_shared<Compiled>();
  for (const std::string& text : texts) {
    if (Status status = Parser(text).parse(compiled->terms); !status) return status.error();
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  for (const Term& term : compiled->terms) {
    std::unique_ptr<re2::RE2> regex;
    if (is_regex(term.op)) {
      regex = std::make_unique<re2::RE2>(term.value, options);
      if (!regex->ok()) {
        return core::invalid_argument("regular expression of " + to_text(term) + ": " +
                                      regex->error());
      }
    }
    compiled->regexes.push_back(std::move(regex));
  }
  Matchers out;
  out.compiled_ = std::move(compiled);
  return out;
}

bool Matchers::holds(std::size_t index, std::string_view value) const {
  const Term& term = compiled_->terms[index];
  switch (term.op) {
    case MatchOperator::equal:
      return value == term.value;
    case MatchOperator::not_equal:
      return value != term.value;
    case MatchOperator::regex:
    case MatchOperator::not_regex: {
      const re2::StringPiece piece(value.data(), value.size());
      const bool found = re2::RE2::FullMatchN(piece, *compiled_->regexes[index], nullptr, 0);
      return found == (term.op == MatchOperator::regex);
    }
  }
  return false;
}

bool Matchers::matches(const core::Labels& labels) const {
  for (std::size_t i = 0; i < compiled_->terms.size(); ++i) {
    if (!holds(i, labels.get(compiled_->terms[i].name))) return false;
  }
  return true;
}

const std::vector<Matchers::Term>& Matchers::terms() const noexcept { return compiled_->terms; }

std::string Matchers::canonical() const {
  std::string out = "{";
  for (const Term& term : compiled_->terms) {
    if (out.size() > 1) out += ',';
    out += to_text(term);
  }
  return out + '}';
}

}  // namespace tocsin::routing
