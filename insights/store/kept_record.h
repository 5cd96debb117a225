// A record as the store keeps it: whole, so that it is read again as it came.
#pragma once

#include <cstdint>
#include <string>

#include "core/record.h"

namespace tocsin::insights {

struct KeptRecord {
  core::OutRecord record;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::int64_t timestamp = 0;  // UTC ns

  /// Borrows this.
  [[nodiscard]] core::RecordView view() const;
};

/// Headers as one text of bytes and back: lengths before each name and value.
std::string packed_headers(const core::OutRecord& record);
/// False: they were cut short.
bool unpack_headers(std::string_view packed, core::OutRecord& out);

}  // namespace tocsin::insights
