// Words of the language of declarative rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rules/declared/syntax.h"

namespace tocsin::rules::declared {

struct Token {
  enum class Kind : std::uint8_t { end, name, number, text, symbol };
  Kind kind = Kind::end;
  std::size_t at = 0;
  std::size_t end = 0;
  std::string text;  // a name, a symbol, the content of a text
  double number = 0;
  bool whole = false;  // a number without fraction or exponent
};

/// Ends with a token of kind end.
Parsed<std::vector<Token>> tokens_of(std::string_view text);
/// What an error says it has found: "the name loss", "the end".
std::string found(const Token& token);

}  // namespace tocsin::rules::declared
