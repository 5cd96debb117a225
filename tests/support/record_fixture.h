// An OutRecord read back as a RecordView, as a transport would hand it out.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "core/record.h"

namespace tocsin::ingest::fixture {

/// Borrows `record`, which must outlive the view.
inline core::RecordView view_of(const core::OutRecord& record) {
  core::RecordView out;
  out.topic = record.topic;
  out.stream = record.topic;
  out.key = record.key;
  out.tombstone = !record.value;
  if (record.value) {
    out.value = {reinterpret_cast<const std::byte*>(record.value->data()), record.value->size()};
  }
  out.native = &record;
  out.find_header = [](const void* native,
                       std::string_view name) -> std::optional<std::string_view> {
    for (const auto& [key, value] : static_cast<const core::OutRecord*>(native)->headers) {
      if (key == name) return value;
    }
    return std::nullopt;
  };
  return out;
}

/// A header's text; empty when there is none.
inline std::string_view header_of(const core::OutRecord& record, std::string_view name) {
  for (const auto& [key, value] : record.headers) {
    if (key == name) return value;
  }
  return {};
}

}  // namespace tocsin::ingest::fixture
