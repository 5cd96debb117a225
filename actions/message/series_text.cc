#include "actions/message/series_text.h"

#include <array>
#include <cstdio>
#include <string_view>

namespace tocsin::actions {
namespace {

/// A time keeps its milliseconds; all else is whole.
std::string number_text(double value) {
  std::array<char, 48> out{};
  const bool whole = value == static_cast<double>(static_cast<std::int64_t>(value));
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
  for (const IssueFamily& family : kIssueFamilies) {
    const std::string name = family.name;
    out += "# HELP " + name + " " + family.help + "\n# TYPE " + name + " " + family.type + "\n";
    for (const IssueSeries& one : series) {
      out += name + labels_text(one) + " " + number_text(family.value(one)) + "\n";
    }
  }
  return out;
}

}  // namespace tocsin::actions
