// Golden files: the bytes of every kind of record as they once were written. Records of that day
// lie in topics and journals for years, so these files are only ever added to, or changed on
// purpose in the commit that changes the form: TOCSIN_WRITE_GOLDEN=1 writes them anew. Tests run in
// the root.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "core/record.h"

namespace tocsin::golden {

inline std::string path(const std::string& name) { return "tests/golden/" + name; }

/// The file's text, without the line end that it closes with; `now` instead when files are written.
inline std::string text(const std::string& name, const std::string& now) {
  if (std::getenv("TOCSIN_WRITE_GOLDEN") != nullptr) std::ofstream(path(name)) << now << '\n';
  std::ifstream file(path(name));
  std::string out{std::istreambuf_iterator<char>(file), {}};
  if (!out.empty()) out.pop_back();
  return out;
}

/// A record as text: "topic: …", "key: …", one line per header, an empty line, the value.
inline std::string to_text(const core::OutRecord& record) {
  std::string out = "topic: " + record.topic + "\n";
  if (!record.key.empty()) out += "key: " + record.key + "\n";
  for (const auto& [name, value] : record.headers) out += name + ": " + value + "\n";
  return out + "\n" + record.value.value_or("(tombstone)");
}

/// The record of such a text.
inline core::OutRecord record(const std::string& text) {
  core::OutRecord out;
  std::size_t at = 0;
  while (at < text.size() && text[at] != '\n') {
    const std::size_t end = text.find('\n', at);
    const std::size_t colon = text.find(": ", at);
    const std::string name = text.substr(at, colon - at);
    std::string value = text.substr(colon + 2, end - colon - 2);
    if (name == "topic") {
      out.topic = std::move(value);
    } else if (name == "key") {
      out.key = std::move(value);
    } else {
      out.headers.emplace_back(name, std::move(value));
    }
    at = end + 1;
  }
  out.value = text.substr(at + 1);
  return out;
}

}  // namespace tocsin::golden
