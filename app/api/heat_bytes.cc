#include "app/api/heat_bytes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/json.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kAlignedTo = 8;

struct HeatScale {
  bool logarithmic = true;
  std::optional<double> lo, hi;

  [[nodiscard]] std::optional<double> at(double value) const {
    if (!logarithmic) return value;
    return value > 0 ? std::optional<double>(std::log10(value)) : std::nullopt;
  }
  void take(double value) {
    const auto place = at(value);
    if (!place) return;
    lo = std::min(lo.value_or(*place), *place);
    hi = std::max(hi.value_or(*place), *place);
  }
  [[nodiscard]] int byte(double value) const {
    const auto place = at(value);
    if (!place) return heat_byte::kNotPositive;
    if (*hi == *lo) return 0;
    // Halves, so that the span of the largest numbers is none of infinity.
    const double part = (*place / 2 - *lo / 2) / (*hi / 2 - *lo / 2);
    return static_cast<int>(std::lround(part * heat_byte::kHighest));
  }
};

void put_word(std::string& out, std::uint32_t word) {
  for (unsigned at = 0; at < 32; at += 8) out.push_back(static_cast<char>(word >> at & 0xFFU));
}

std::string cells_of(const insights::HeatAnswer& heat, const HeatScale& scale) {
  std::string out;
  for (const insights::HeatRow& row : heat.rows) {
    const std::size_t begin = out.size();
    for (const auto& cell : row.cells)
      out.push_back(static_cast<char>(cell ? scale.byte(*cell) : heat_byte::kNothing));
    for (const insights::HeatBad& bad : row.bad)
      out[begin + static_cast<std::size_t>(bad.column)] = static_cast<char>(heat_byte::kNotFinite);
  }
  return out;
}

}  // namespace

std::string heat_bytes(const insights::HeatAnswer& heat, core::ValueMap head, bool logarithmic) {
  HeatScale scale{logarithmic, {}, {}};
  for (const insights::HeatRow& row : heat.rows) {
    for (const auto& cell : row.cells) {
      if (cell) scale.take(*cell);
    }
  }
  const std::string cells = cells_of(heat, scale);
  const auto end_of = [](const std::optional<double>& end) {
    return end ? core::Value(*end) : core::Value();
  };
  head.emplace_back("scale", logarithmic ? "log10" : "linear");
  head.emplace_back("lo", end_of(scale.lo));
  head.emplace_back("hi", end_of(scale.hi));
  head.emplace_back("arrays", core::ValueList{core::ValueMap{
                                  {"of", "cells"},
                                  {"type", "u8"},
                                  {"at", 0},
                                  {"count", static_cast<std::int64_t>(cells.size())}}});
  std::string text = core::to_json(core::Value(std::move(head)));
  text.resize((text.size() + kAlignedTo - 1) / kAlignedTo * kAlignedTo, ' ');
  std::string out = "TOCSCOL1";
  put_word(out, static_cast<std::uint32_t>(text.size()));
  put_word(out, 0);
  return out + text + cells;
}

}  // namespace tocsin::app
