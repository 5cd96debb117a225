// Range checks, diagnostics as text, and secrets.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <tuple>

#include "config/config.h"
#include "config/secret_reads.h"
#include "config/values.h"

namespace tocsin::config {
namespace {

template <typename T>
std::string number_text(T value) {
  return core::to_json(as_value(value));
}

}  // namespace

template <typename T>
Check<T> greater_than(T limit) {
  return {[limit](const T& value) { return value > limit; },
          "> " + number_text(limit),
          static_cast<double>(limit),
          std::nullopt,
          true,
          {}};
}
template <typename T>
Check<T> at_least(T limit) {
  return {[limit](const T& value) { return value >= limit; },
          ">= " + number_text(limit),
          static_cast<double>(limit),
          std::nullopt,
          false,
          {}};
}
template <typename T>
Check<T> between(T low, T high) {
  return {[low, high](const T& value) { return value >= low && value <= high; },
          number_text(low) + " … " + number_text(high),
          static_cast<double>(low),
          static_cast<double>(high),
          false,
          {}};
}
#define TOCSIN_RANGES(T)             \
  template Check<T> greater_than(T); \
  template Check<T> at_least(T);     \
  template Check<T> between(T, T);
TOCSIN_RANGES(int)
TOCSIN_RANGES(std::int64_t)
TOCSIN_RANGES(std::uint32_t)
TOCSIN_RANGES(std::uint64_t)
TOCSIN_RANGES(double)
#undef TOCSIN_RANGES

Check<double> above(double low, double high) {
  Check<double> out = between(low, high);
  out.ok = [low, high](const double& value) { return value > low && value <= high; };
  out.expected = "> " + out.expected;
  out.exclusive_minimum = true;
  return out;
}

template <>
Check<core::Duration> at_least(core::Duration limit) {
  return {[limit](const core::Duration& value) { return value >= limit; },
          ">= " + core::to_text(limit),
          std::nullopt,
          std::nullopt,
          false,
          {}};
}
template <>
Check<core::Duration> between(core::Duration low, core::Duration high) {
  return {[low, high](const core::Duration& value) { return value >= low && value <= high; },
          core::to_text(low) + " … " + core::to_text(high),
          std::nullopt,
          std::nullopt,
          false,
          {}};
}
Check<core::Duration> positive() {
  return {[](const core::Duration& value) { return value.count() > 0; },
          "> 0s",
          std::nullopt,
          std::nullopt,
          false,
          {}};
}
Check<std::string> one_of(std::vector<std::string> choices) {
  std::string expected = "one of ";
  for (std::size_t i = 0; i < choices.size(); ++i) expected += (i == 0 ? "" : ", ") + choices[i];
  Check<std::string> check;
  check.expected = expected;
  check.choices = choices;
  check.ok = [choices](const std::string& value) {
    for (const auto& choice : choices) {
      if (choice == value) return true;
    }
    return false;
  };
  return check;
}
Check<std::string> not_empty() {
  return {[](const std::string& value) { return !value.empty(); },
          "not empty",
          std::nullopt,
          std::nullopt,
          false,
          {}};
}

bool Diagnostics::has_errors() const noexcept {
  for (const auto& item : items_) {
    if (item.grade == Grade::error) return true;
  }
  return false;
}

void Diagnostics::sort(std::string_view first) {
  const auto rank = [first](const Diagnostic& item) {
    return std::tuple(item.location.file != first, std::string_view(item.location.file),
                      item.location.line, item.location.column);
  };
  std::stable_sort(items_.begin(), items_.end(),
                   [&](const Diagnostic& a, const Diagnostic& b) { return rank(a) < rank(b); });
}

std::string_view to_string(Grade grade) noexcept {
  switch (grade) {
    case Grade::note:
      return "note";
    case Grade::warning:
      return "warning";
    case Grade::error:
      break;
  }
  return "error";
}

std::string to_text(const Diagnostic& diagnostic) {
  std::string out = diagnostic.location.file;
  if (diagnostic.location.line > 0) {
    out += ":" + std::to_string(diagnostic.location.line) + ":" +
           std::to_string(diagnostic.location.column);
  }
  if (!out.empty()) out += ": ";
  out += std::string(to_string(diagnostic.grade)) + ": " + diagnostic.message;
  if (!diagnostic.path.empty()) out += " (at " + diagnostic.path + ")";
  return out;
}

Secret Secret::from_value(std::string value) {
  Secret secret;
  secret.value_ = std::move(value);
  return secret;
}
Secret Secret::from_file(std::string path) {
  Secret secret;
  secret.path_ = std::move(path);
  return secret;
}

// Read at every use: a secret is opened a few times a minute, and rotation then needs no signal.
core::Result<std::string> Secret::reveal() const {
  if (path_.empty()) {
    if (value_.empty()) return core::not_found("no secret is configured");
    return value_;
  }
  std::ifstream in(path_, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in.is_open()) return core::not_found("secret file " + path_ + " cannot be read");
  std::string value = text.str();
  while (!value.empty() && (value.back() == '\n' || value.back() == '\r')) value.pop_back();
  if (value.empty()) return core::invalid_argument("secret file " + path_ + " is empty");
  note_secret_read(path_, value);
  return value;
}

}  // namespace tocsin::config
