#include "app/replay/sweep_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/time.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMaxSteps = 200;
constexpr double kDecade = 10;

/// Twelve digits: 1e-8, and not what a logarithm and back makes of it.
double tidy(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.12g", value);
  return std::strtod(text.data(), nullptr);
}

std::vector<std::string> comma_separated(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t next = std::min(text.find(',', from), text.size());
    out.push_back(text.substr(from, next - from));
    from = next + 1;
  }
  return out;
}

/// Whole seconds, or milliseconds of a short one.
core::Duration tidy_duration(double nanoseconds) {
  const double unit = nanoseconds >= 1e10 ? 1e9 : nanoseconds >= 1e7 ? 1e6 : 1;
  return core::Duration(static_cast<std::int64_t>(std::round(nanoseconds / unit) * unit));
}

/// Both ends included.
std::vector<double> between(double low, double high, std::optional<std::size_t> steps) {
  const bool ratios = low > 0 && high / low >= kDecade;
  if (!steps && ratios) {
    steps = std::max<std::size_t>(
        3, static_cast<std::size_t>(std::ceil(std::log10(high / low) - 1e-9)) + 1);
  }
  const bool whole = std::floor(low) == low && std::floor(high) == high;
  if (!steps) steps = whole && high - low <= 20 ? static_cast<std::size_t>(high - low) + 1 : 5;
  std::vector<double> out;
  for (std::size_t i = 0; i < *steps; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(*steps - 1);
    out.push_back(tidy(ratios ? low * std::pow(high / low, part) : low + (high - low) * part));
  }
  return out;
}

core::Result<std::optional<std::size_t>> steps_of(std::string& range) {
  const std::size_t colon = range.rfind(':');
  if (colon == std::string::npos) return std::optional<std::size_t>();
  const auto steps = sweep_number(range.substr(colon + 1));
  if (!steps || std::floor(*steps) != *steps || *steps < 2 || *steps > kMaxSteps) {
    return sweep_error("STEPS must be a whole number from 2 to " + std::to_string(kMaxSteps) +
                       ", got " + range.substr(colon + 1));
  }
  range.erase(colon);
  return std::optional<std::size_t>(static_cast<std::size_t>(*steps));
}

/// Switches and words stand one by one.
core::Result<std::vector<core::Value>> words_of(const std::string& text, bool switches) {
  std::vector<core::Value> out;
  for (const std::string& one : comma_separated(text)) {
    if (!switches) {
      out.emplace_back(one);
    } else if (one == "true" || one == "false") {
      out.emplace_back(one == "true");
    } else {
      return sweep_error("\"" + one + "\" is neither true nor false");
    }
  }
  if (out.size() > kMaxSteps)
    return sweep_error("more than " + std::to_string(kMaxSteps) + " values");
  return out;
}

/// Adds a number, unless it is the one before.
void add_number(std::vector<core::Value>& out, double value, bool whole) {
  if (whole) value = std::round(value);
  core::Value one = whole ? core::Value(static_cast<std::int64_t>(value)) : core::Value(value);
  if (out.empty() || !(out.back() == one)) out.push_back(std::move(one));
}

/// Numbers and durations, one by one.
core::Result<std::vector<core::Value>> listed_values(const std::string& text, bool whole) {
  std::vector<core::Value> out;
  for (const std::string& one : comma_separated(text)) {
    if (const auto value = sweep_number(one)) {
      add_number(out, *value, whole);
    } else if (core::parse_duration(one)) {
      out.emplace_back(one);
    } else {
      return sweep_error("\"" + one + "\" is neither a number nor a duration");
    }
  }
  if (out.size() > kMaxSteps)
    return sweep_error("more than " + std::to_string(kMaxSteps) + " values");
  return out;
}

}  // namespace

core::Error sweep_error(const std::string& why) {
  return core::invalid_argument("--sweep: " + why);
}

std::optional<double> sweep_number(const std::string& text) {
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || !std::isfinite(value)) return std::nullopt;
  return value;
}

core::Result<std::vector<core::Value>> sweep_values(std::string text, const std::string& type) {
  if (type == "boolean" || type == "string") return words_of(text, type == "boolean");
  const bool whole = type == "integer";
  std::vector<core::Value> out;
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    return listed_values(text, whole);
  }
  auto steps = steps_of(text);
  if (!steps) return steps.error();
  const std::string low = text.substr(0, dots);
  const std::string high = text.substr(dots + 2);
  const auto first = sweep_number(low);
  const auto last = sweep_number(high);
  if (first && last && *first < *last) {
    for (const double value : between(*first, *last, *steps)) {
      add_number(out, value, whole);
    }
    return out;
  }
  const auto from = core::parse_duration(low);
  const auto to = core::parse_duration(high);
  if (from && to && *from < *to) {
    for (const double value :
         between(static_cast<double>(from->count()), static_cast<double>(to->count()), *steps)) {
      out.emplace_back(core::to_text(tidy_duration(value)));
    }
    return out;
  }
  return sweep_error("\"" + low + ".." + high +
                     "\" must be two numbers or two durations, the smaller one first");
}

}  // namespace tocsin::app
