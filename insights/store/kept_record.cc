#include "insights/store/kept_record.h"

#include <charconv>
#include <optional>

namespace tocsin::insights {
namespace {

std::optional<std::string_view> kept_header(const void* native, std::string_view name) {
  for (const auto& [known, value] : static_cast<const core::OutRecord*>(native)->headers) {
    if (known == name) return value;
  }
  return std::nullopt;
}

void put(std::string& out, std::string_view text) {
  out += std::to_string(text.size());
  out += ':';
  out += text;
}

std::optional<std::string> taken(std::string_view& from) {
  const std::size_t colon = from.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::size_t size = 0;
  const auto read = std::from_chars(from.data(), from.data() + colon, size);
  if (read.ec != std::errc{} || read.ptr != from.data() + colon) return std::nullopt;
  from.remove_prefix(colon + 1);
  if (size > from.size()) return std::nullopt;
  std::string out(from.substr(0, size));
  from.remove_prefix(size);
  return out;
}

}  // namespace

core::RecordView KeptRecord::view() const {
  core::RecordView out;
  out.topic = record.topic;
  out.stream = record.topic;
  out.partition = partition;
  out.offset = offset;
  out.timestamp = timestamp;
  out.key = record.key;
  out.tombstone = !record.value;
  if (record.value) out.value = std::as_bytes(std::span(*record.value));
  out.native = &record;
  out.find_header = kept_header;
  return out;
}

std::string packed_headers(const core::OutRecord& record) {
  std::string out;
  for (const auto& [name, value] : record.headers) {
    put(out, name);
    put(out, value);
  }
  return out;
}

bool unpack_headers(std::string_view packed, core::OutRecord& out) {
  while (!packed.empty()) {
    auto name = taken(packed);
    auto value = name ? taken(packed) : std::nullopt;
    if (!value) return false;
    out.headers.emplace_back(std::move(*name), std::move(*value));
  }
  return true;
}

}  // namespace tocsin::insights
