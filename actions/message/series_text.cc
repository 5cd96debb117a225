#include "actions/message/series_text.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace tocsin::actions {
namespace {

/// A time keeps its milliseconds, a scalar nine digits; all else is whole.
std::string number_text(double value, bool scalar) {
  std::array<char, 48> out{};
  if (scalar) {
    std::snprintf(out.data(), out.size(), "%.9g", value);
    return out.data();
  }
  const bool whole = value == std::trunc(value);
  std::snprintf(out.data(), out.size(), whole ? "%.0f" : "%.3f", value);
  return out.data();
}

std::string labels_text(const IssueSeries& series) {
  std::string out;
  for (const auto& [name, value] : series.labels) {
    out += (out.empty() ? "" : ",") + name + "=" + quoted_label(value);
  }
  return "{" + out + "}";
}

void add_family(std::span<const IssueSeries> series, const IssueFamily& family, std::string& out) {
  const std::string name = family.name;
  out += "# HELP " + name + " " + family.help + "\n# TYPE " + name + " " + family.type + "\n";
  for (const IssueSeries& one : series) {
    if (!belongs(one, family)) continue;
    const double value = family.value(one);
    out += name + labels_text(one) + " " + number_text(value, one.scalar.has_value()) + "\n";
  }
}

}  // namespace

std::string quoted_label(const std::string& value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out + "\"";
}

std::string series_text(std::span<const IssueSeries> series) {
  std::string out;
  for_each_family(series, [&](const IssueFamily& family) { add_family(series, family, out); });
  return out;
}

std::string scalars_text(std::span<const IssueSeries> scalars) {
  std::string out;
  if (scalars.empty()) return out;
  for (const IssueFamily& family : kScalarFamilies) add_family(scalars, family, out);
  return out;
}

}  // namespace tocsin::actions
