// Statistics of tensors that no rule finds anything about, as rows and as the body of a frame.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/codes.h"
#include "core/frame.h"
#include "core/identity.h"

namespace tocsin::bench {

inline core::SummaryRow healthy_row(std::string_view name, core::Role role) {
  core::SummaryRow row;
  row.name = core::name_hash(name);
  row.count = 4096;
  row.sum = 1;
  row.sumsq = 40.96;
  row.m2 = 40;
  row.abs_sum = 409.6;
  row.min = -1;
  row.max = 1;
  row.zero = 3;
  row.negative = 2000;
  row.meta = core::meta::make(core::Dtype::f32, role);
  return row;
}

/// Column by column.
inline std::string body_of(const std::vector<core::SummaryRow>& rows) {
  std::string out;
  for (std::size_t k = 0; k < core::summary_column::columns; ++k) {
    for (const core::SummaryRow& row : rows) {
      out.append(reinterpret_cast<const char*>(&row) + k * core::kColumnBytes, core::kColumnBytes);
    }
  }
  return out;
}

}  // namespace tocsin::bench
