#include "config/number_pattern.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace tocsin::config {
namespace {

using Natural = std::uint64_t;

std::string join(const std::vector<std::string>& choices) {
  std::string out = "(";
  for (std::size_t i = 0; i < choices.size(); ++i) out += (i == 0 ? "" : "|") + choices[i];
  return out + ")";
}

std::string digits(std::size_t count) {
  return count == 0 ? "" : "[0-9]{" + std::to_string(count) + "}";
}

std::string one_of(char low, char high) {
  if (low == high) return {low};
  return std::string("[") + low + "-" + high + "]";
}

// Numbers of as many digits as `low` and `high` have, which begin with `prefix`.
void between(const std::string& prefix, const std::string& low, const std::string& high,
             std::vector<std::string>& out) {
  const std::size_t rest = low.empty() ? 0 : low.size() - 1;
  const bool whole = low == std::string(low.size(), '0') && high == std::string(high.size(), '9');
  if (low.empty() || whole) return out.push_back(prefix + digits(low.size()));
  if (low[0] == high[0]) return between(prefix + low[0], low.substr(1), high.substr(1), out);
  char first = low[0];
  char last = high[0];
  if (low.substr(1) != std::string(rest, '0')) {
    between(prefix + first++, low.substr(1), std::string(rest, '9'), out);
  }
  if (high.substr(1) != std::string(rest, '9')) {
    between(prefix + last--, std::string(rest, '0'), high.substr(1), out);
  }
  if (first <= last) out.push_back(prefix + one_of(first, last) + digits(rest));
}

// `low` … `high` without a sign; nullopt: without an end. Zeros may stand in front.
std::string naturals(Natural low, std::optional<Natural> high) {
  std::vector<std::string> choices;
  for (std::string from = std::to_string(low);; from = "1" + std::string(from.size(), '0')) {
    const std::string nines(from.size(), '9');
    if (high && std::to_string(*high).size() == from.size()) {
      between("", from, std::to_string(*high), choices);
      break;
    }
    between("", from, nines, choices);
    if (high) continue;
    choices.push_back("[1-9]" + digits(from.size()) + "[0-9]*");
    break;
  }
  return "0*" + join(choices);
}

std::optional<Natural> natural(std::optional<double> value) {
  if (!value || *value >= 1e18) return std::nullopt;
  return static_cast<Natural>(std::max(0.0, std::floor(*value)));
}

}  // namespace

std::string whole_pattern(const NumberRange& range) {
  const double least = range.minimum.value_or(-std::numeric_limits<double>::infinity());
  const double low = range.exclusive_minimum ? std::floor(least) + 1 : std::ceil(least);
  std::vector<std::string> choices;
  if (!range.maximum || *range.maximum >= 0) {
    choices.push_back(naturals(*natural(std::max(0.0, low)), natural(range.maximum)));
  }
  if (low < 0) {
    const double from = range.maximum ? std::max(0.0, -std::floor(*range.maximum)) : 0;
    choices.push_back(
        "-" + naturals(*natural(from), natural(std::isinf(low) ? std::optional<double>() : -low)));
  }
  return join(choices) + R"((\.0+)?)";  // "10.0": a whole number too
}

std::string number_pattern(const NumberRange& range) {
  const bool positive = range.minimum && *range.minimum >= 0;
  if (!positive) return R"([-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)";
  const Natural low = *natural(range.minimum);
  const std::optional<Natural> high = natural(range.maximum);
  std::vector<std::string> choices;
  const bool open = range.exclusive_minimum && *range.minimum == static_cast<double>(low);
  const Natural first = open ? low + 1 : low;
  if (open) choices.push_back(naturals(low, low) + R"(\.[0-9]*[1-9][0-9]*)");
  if (!high || first < *high) {
    choices.push_back(naturals(first, high ? std::optional(*high - 1) : high) + R"((\.[0-9]*)?)");
  }
  if (high) {
    const bool whole = static_cast<double>(*high) == *range.maximum;
    choices.push_back(naturals(*high, *high) + (whole ? R"((\.0*)?)" : R"((\.[0-9]*)?)"));
  }
  if (low == 0) choices.emplace_back(open ? R"(\.[0-9]*[1-9][0-9]*)" : R"(\.[0-9]+)");
  // The mantissa has a digit that is not 0 where 0 is too little.
  const std::string mantissa =
      std::string(open || low > 0 ? "(?=[0-9.]*[1-9])" : "") + R"(([0-9]+\.?[0-9]*|\.[0-9]+))";
  const std::string sign = low > 0 ? R"(\+?)" : high ? "-" : "[-+]?";
  choices.push_back(mantissa + "[eE]" + sign + "[0-9]+");
  return R"(\+?)" + join(choices);
}

}  // namespace tocsin::config
