#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "app/report/heat_strip.h"
#include "app/report/svg_parts.h"

namespace tocsin::app::report {
namespace {

// Places of the palette: numbers from the least to the greatest, and three that are none.
constexpr int kHighestColour = 252;
constexpr int kNotPositive = 253;
constexpr int kNotFinite = 254;
constexpr int kNothing = 255;

using Colour = std::array<std::uint8_t, 3>;

// Viridis, dark for low: its points at 0, 1/8, … 1.
constexpr Colour kViridis[] = {{68, 1, 84},    {71, 44, 122},  {59, 81, 139},
                               {44, 113, 142}, {33, 144, 141}, {39, 173, 129},
                               {92, 200, 99},  {170, 220, 50}, {253, 231, 37}};

Colour colour_at(int place) {
  if (place == kNotPositive) return {128, 128, 128};
  if (place == kNotFinite) return {214, 39, 40};
  if (place == kNothing) return {255, 255, 255};
  const double at = place * 8.0 / kHighestColour;
  const auto low = static_cast<std::size_t>(std::min(std::floor(at), 7.0));
  Colour out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::uint8_t>(
        std::lround(kViridis[low][i] +
                    (at - static_cast<double>(low)) * (kViridis[low + 1][i] - kViridis[low][i])));
  }
  return out;
}

void put_length(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> static_cast<unsigned>(shift) & 0xFFU);
  }
}

void put_chunk(std::string& out, const char* type, const std::string& data) {
  put_length(out, static_cast<std::uint32_t>(data.size()));
  const std::string checked = type + data;
  out += checked;
  put_length(out,
             static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(checked.data()),
                                              static_cast<uInt>(checked.size()))));
}

std::string deflated(const std::string& data) {
  uLongf size = compressBound(data.size());
  std::string out(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                reinterpret_cast<const Bytef*>(data.data()), data.size(), 9) != Z_OK) {
    return {};
  }
  out.resize(size);
  return out;
}

double place_on_scale(double value, bool logarithmic) {
  return logarithmic ? std::log10(value) : value;
}

}  // namespace

std::string heat_png(const HeatStrip& strip) {
  ChartBounds scale;
  for (const HeatStrip::Row& row : strip.rows) {
    for (const double cell : row.cells) {
      if (!strip.logarithmic || cell > 0) scale.take(place_on_scale(cell, strip.logarithmic));
    }
  }
  const auto place_of = [&](double cell, bool bad) {
    if (bad) return kNotFinite;
    if (!std::isfinite(cell)) return kNothing;
    if (strip.logarithmic && !(cell > 0)) return kNotPositive;
    if (!(scale.high > scale.low)) return 0;
    // Halves, so that the span of the largest numbers is none of infinity.
    const double part = (place_on_scale(cell, strip.logarithmic) / 2 - scale.low / 2) /
                        (scale.high / 2 - scale.low / 2);
    return static_cast<int>(std::lround(part * kHighestColour));
  };
  std::string cells;
  for (const HeatStrip::Row& row : strip.rows) {
    cells += '\0';  // no filter
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      cells += static_cast<char>(place_of(row.cells[i], row.bad[i]));
    }
  }
  std::string head;
  put_length(head, static_cast<std::uint32_t>(strip.rows.empty() ? 0 : strip.rows[0].cells.size()));
  put_length(head, static_cast<std::uint32_t>(strip.rows.size()));
  head += std::string("\x08\x03\x00\x00\x00", 5);  // 8 bits, palette
  std::string palette;
  std::string alpha(kNothing, '\xFF');
  alpha += '\0';
  for (int place = 0; place <= kNothing; ++place) {
    for (const std::uint8_t part : colour_at(place)) palette += static_cast<char>(part);
  }
  std::string out = "\x89PNG\r\n\x1a\n";
  put_chunk(out, "IHDR", head);
  put_chunk(out, "PLTE", palette);
  put_chunk(out, "tRNS", alpha);
  put_chunk(out, "IDAT", deflated(cells));
  put_chunk(out, "IEND", "");
  return out;
}

}  // namespace tocsin::app::report
