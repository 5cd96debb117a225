#include "insights/series/series_ages.h"

#include <algorithm>

namespace tocsin::insights {
namespace {

constexpr int kLongerByLevel = 4;

core::Duration longer(core::Duration age, core::Duration most) {
  return age > most / kLongerByLevel ? most : age * kLongerByLevel;
}

}  // namespace

std::array<core::Duration, kKeptParts> ages_of(FamilyKind kind, const KeepAges& keep) {
  std::array<core::Duration, kKeptParts> out{};
  if (kind == FamilyKind::span) {
    out.fill(std::min(keep.spans, keep.runs));
    return out;
  }
  core::Duration rows = keep.scalars;
  core::Duration lowest = longer(keep.scalars, keep.runs);
  if (kind == FamilyKind::tensor) {
    rows = keep.tensors;
    lowest = keep.tensor_rollups;
  } else if (kind == FamilyKind::system) {
    rows = keep.system;
    lowest = keep.system_rollups;
  }
  out[kRowsPart] = std::min(rows, keep.runs);
  out[kRowsPart + 1] = std::min(std::max(rows, lowest), keep.runs);
  for (std::size_t part = kRowsPart + 2; part < kKeptParts; ++part)
    out[part] = longer(out[part - 1], keep.runs);
  return out;
}

}  // namespace tocsin::insights
