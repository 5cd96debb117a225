// A heat map as bytes, for pages: one byte per cell behind a head of JSON (docs/page.md).
#pragma once

#include <string>

#include "core/value.h"
#include "insights/insights.h"

namespace tocsin::app {

inline constexpr const char* kColumnsType = "application/vnd.tocsin.columns";

/// Bytes of cells.
namespace heat_byte {
inline constexpr int kHighest = 252;      // 0…252: from the least to the greatest value
inline constexpr int kNotPositive = 253;  // on a logarithmic scale
inline constexpr int kNotFinite = 254;
inline constexpr int kNothing = 255;
}  // namespace heat_byte

/// What is not in `head`: the scale with its ends, and where the bytes lie.
std::string heat_bytes(const insights::HeatAnswer& heat, core::ValueMap head, bool logarithmic);

}  // namespace tocsin::app
