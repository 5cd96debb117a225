// The language of declarative rules as it is written: selectors, windows and expressions, each part
// with the place in its text where it stands (docs/custom-rules.md). What the parts mean is decided
// in compile.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin::rules::declared {

/// What is wrong with a text, and at which byte of it (from 0).
struct Problem {
  std::size_t at = 0;
  std::string message;
};

/// Either a value or the first problem of its text.
template <typename T>
struct Parsed {
  T value{};
  std::optional<Problem> problem;
  explicit operator bool() const noexcept { return !problem.has_value(); }
};

/// A part of an expression.
struct Node {
  enum class Kind : std::uint8_t { number, text, boolean, name, call, negate, invert, binary };
  Kind kind = Kind::number;
  std::size_t at = 0;   // first byte
  std::size_t end = 0;  // behind the last one
  double number = 0;    // of a number in its base unit, or of a boolean
  std::string text;     // a text's content, a name, a function, an operator
  std::string owner;    // `a` of `a.value`; empty: none
  std::vector<Node> parts;
};

/// "mean(value) < 20 %". At most kDeepest parts within each other.
Parsed<Node> parse_expression(std::string_view text);
inline constexpr int kDeepest = 64;

struct Matcher {
  std::string name;
  std::string op;  // = != =~ !~
  std::string value;
  std::size_t at = 0;
  std::size_t value_at = 0;
};

struct Selector {
  enum class Source : std::uint8_t { tensor, collection, metric, system, span, step };
  Source source = Source::metric;
  std::string argument;
  std::size_t argument_at = 0;
  std::vector<Matcher> matchers;
};

/// "metric(\"loss\"){mode=\"train\"}"
Parsed<Selector> parse_selector(std::string_view text);

/// Steps, or a duration in nanoseconds.
struct Size {
  std::int64_t amount = 1;
  bool steps = true;
};

struct Window {
  enum class Kind : std::uint8_t { last, every, session, start };
  Kind kind = Kind::last;
  Size size;
  std::optional<Size> hop;  // of `last`: judged only every so often
  std::size_t at = 0;       // of `size`
};

/// "last 50 steps", "last 5m every 1m", "every 60s", "session 30s", "since start"
Parsed<Window> parse_window(std::string_view text);

/// "50 steps", "5m"
Parsed<Size> parse_size(std::string_view text);

/// A text with expressions in braces; "{{" stands for one brace.
struct Template {
  std::vector<std::string> texts;  // one more than expressions
  std::vector<Node> expressions;   // places count from the beginning of the whole text
};
Parsed<Template> parse_template(std::string_view text);

/// Seconds, bytes or shares of one: nullopt where it is no unit.
std::optional<double> in_base_unit(double number, std::string_view unit);

}  // namespace tocsin::rules::declared
