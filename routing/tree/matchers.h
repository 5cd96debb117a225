// Conditions on labels: `name OP "value"` (docs/routing.md, Matchers).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/labels.h"
#include "core/result.h"

namespace tocsin::routing {

enum class MatchOperator { equal, not_equal, regex, not_regex };

/// Conjunction of `name OP "value"`, OP one of = != =~ !~. Regexes are RE2, anchored at both ends.
/// A missing label compares as the empty text. Cheap to copy; matching is thread-safe.
class Matchers {
 public:
  struct Term {
    std::string name;
    MatchOperator op = MatchOperator::equal;
    std::string value;
  };

  Matchers();
  /// `{a="b", c=~"d"}`, the same without braces, or one term; empty text and `{}` match everything.
  /// invalid_argument says what was expected at which character (counted from 1).
  static core::Result<Matchers> parse(std::string_view text);
  /// All terms of all texts.
  static core::Result<Matchers> parse(const std::vector<std::string>& texts);

  [[nodiscard]] bool matches(const core::Labels& labels) const;
  [[nodiscard]] const std::vector<Term>& terms() const noexcept;
  /// Does the term at `index` hold for this value of its label (empty = absent)?
  [[nodiscard]] bool holds(std::size_t index, std::string_view value) const;
  /// `{a="b",c=~"d"}`: terms in the order they were written, always quoted; parses to the same.
  [[nodiscard]] std::string canonical() const;
  [[nodiscard]] bool empty() const noexcept { return terms().empty(); }

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

/// `name OP "value"` as canonical() writes it.
std::string to_text(const Matchers::Term& term);

}  // namespace tocsin::routing
