#include "insights/series/exponential_counts.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace tocsin::insights {
namespace {

constexpr std::uint64_t kMostElements = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kPerOctave = 8;
constexpr std::int64_t kLowestBucket = -1074 * kPerOctave - 1;  // of the smallest number of all
constexpr std::int64_t kBucketsEnd = 1024 * kPerOctave;
constexpr std::size_t kFixedOfATag = 24;
constexpr unsigned kBitsOfAByte = 7;
constexpr unsigned kMostShift = 63;

std::uint64_t added(std::uint64_t a, std::uint64_t b) noexcept {
  return a > kMostElements - std::min(b, kMostElements) ? kMostElements : a + b;
}

void trim(MagnitudeCounts& of) {
  const auto counted = [](std::uint64_t n) { return n != 0; };
  const auto begin = std::find_if(of.counts.begin(), of.counts.end(), counted);
  const auto end = std::find_if(of.counts.rbegin(), of.counts.rend(), counted).base();
  if (begin == of.counts.end()) {
    of = {};
    return;
  }
  of.first += begin - of.counts.begin();
  of.counts = std::vector<std::uint64_t>(begin, end);
}

void halve(MagnitudeCounts& of) {
  if (of.empty()) return;
  MagnitudeCounts out;
  out.first = of.first >> 1;
  out.counts.assign(static_cast<std::size_t>(((of.end() - 1) >> 1) - out.first + 1), 0);
  for (std::size_t at = 0; at < of.counts.size(); ++at) {
    const std::int64_t bucket = (of.first + static_cast<std::int64_t>(at)) >> 1;
    std::uint64_t& into = out.counts[static_cast<std::size_t>(bucket - out.first)];
    into = added(into, of.counts[at]);
  }
  of = std::move(out);
}

// Both of one scale.
void merge(MagnitudeCounts& into, const MagnitudeCounts& more) {
  if (more.empty()) return;
  if (into.empty()) {
    into = more;
    return;
  }
  const std::int64_t first = std::min(into.first, more.first);
  const std::int64_t end = std::max(into.end(), more.end());
  into.counts.insert(into.counts.begin(), static_cast<std::size_t>(into.first - first), 0);
  into.counts.resize(static_cast<std::size_t>(end - first), 0);
  into.first = first;
  for (std::size_t at = 0; at < more.counts.size(); ++at) {
    auto& count = into.counts[static_cast<std::size_t>(more.first - first) + at];
    count = added(count, more.counts[at]);
  }
}

void put_varint(std::string& out, std::uint64_t value) {
  constexpr std::uint64_t kMore = 0x80;
  for (; value >= kMore; value >>= kBitsOfAByte) out.push_back(static_cast<char>(value | kMore));
  out.push_back(static_cast<char>(value));
}

// Zeros are 0 and how many more there are.
void put_magnitudes(std::string& out, const MagnitudeCounts& of) {
  put_varint(out, static_cast<std::uint64_t>(of.first - kLowestBucket));
  put_varint(out, of.counts.size());
  for (std::size_t at = 0; at < of.counts.size(); ++at) {
    put_varint(out, of.counts[at]);
    if (of.counts[at] != 0) continue;
    const std::size_t begin = at;
    while (of.counts[at + 1] == 0) ++at;  // the last is none
    put_varint(out, at - begin);
  }
}

struct CountsReading {
  std::string_view bytes;
  bool good = true;

  std::uint64_t varint() {
    std::uint64_t out = 0;
    for (unsigned shift = 0; shift <= kMostShift; shift += kBitsOfAByte) {
      if (bytes.empty()) break;
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      out |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80U) return out;
    }
    good = false;
    return 0;
  }
  MagnitudeCounts magnitudes() {
    MagnitudeCounts out;
    const std::uint64_t first = varint();
    const std::uint64_t size = varint();
    if (!good || size > kMostBuckets ||
        first > static_cast<std::uint64_t>(kBucketsEnd - kLowestBucket)) {
      good = false;
      return {};
    }
    out.first = static_cast<std::int64_t>(first) + kLowestBucket;
    while (good && out.counts.size() < size) {
      const std::uint64_t count = varint();
      const std::uint64_t more = count == 0 ? varint() : 0;
      if (more >= size - out.counts.size()) good = false;
      if (good) out.counts.insert(out.counts.end(), static_cast<std::size_t>(more) + 1, count);
    }
    return out;
  }
};

bool read_magnitudes(std::span<const std::byte> bytes, std::int64_t first, MagnitudeCounts& out) {
  out.first = first;
  out.counts.resize(bytes.size() / sizeof(std::uint64_t));
  if (!out.counts.empty()) std::memcpy(out.counts.data(), bytes.data(), bytes.size());
  trim(out);
  for (std::uint64_t& count : out.counts) count = std::min(count, kMostElements);
  return out.empty() || (out.first >= kLowestBucket && out.end() <= kBucketsEnd);
}

template <typename T>
T at_byte(std::span<const std::byte> bytes, std::size_t at) {
  T out{};
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

}  // namespace

std::uint64_t sum_of(const MagnitudeCounts& counts) noexcept {
  std::uint64_t out = 0;
  for (const std::uint64_t count : counts.counts) out = added(out, count);
  return out;
}

std::uint64_t ExponentialCounts::elements() const noexcept {
  std::uint64_t out = added(sum_of(positive), sum_of(negative));
  for (const std::uint64_t count : {zero, nan, posinf, neginf}) out = added(out, count);
  return out;
}

void ExponentialCounts::coarsen_to(int coarser) {
  for (; scale > coarser; --scale) {
    halve(positive);
    halve(negative);
  }
}

void ExponentialCounts::add(const ExponentialCounts& more) {
  coarsen_to(more.scale);
  if (more.scale > scale) {
    ExponentialCounts coarse = more;
    coarse.coarsen_to(scale);
    return add(coarse);
  }
  merge(positive, more.positive);
  merge(negative, more.negative);
  zero = added(zero, more.zero);
  nan = added(nan, more.nan);
  posinf = added(posinf, more.posinf);
  neginf = added(neginf, more.neginf);
}

std::optional<RowCounts> read_row_counts(std::span<const std::byte> payload) {
  if (payload.size() < kFixedOfATag) return std::nullopt;
  const std::size_t positive = at_byte<std::uint32_t>(payload, 8);
  const std::size_t negative = at_byte<std::uint32_t>(payload, 16);
  const auto rest = payload.subspan(kFixedOfATag);
  constexpr std::size_t kCount = sizeof(std::uint64_t);
  if ((positive + negative) * kCount > rest.size()) return std::nullopt;
  RowCounts out;
  out.row = at_byte<std::uint32_t>(payload, 0);
  const bool good = read_magnitudes(rest.first(positive * kCount),
                                    at_byte<std::int32_t>(payload, 4), out.counts.positive) &&
                    read_magnitudes(rest.subspan(positive * kCount, negative * kCount),
                                    at_byte<std::int32_t>(payload, 12), out.counts.negative);
  return good ? std::optional<RowCounts>(std::move(out)) : std::nullopt;
}

std::string encode_counts(ExponentialCounts counts) {
  while (std::max(counts.positive.counts.size(), counts.negative.counts.size()) > kMostBuckets)
    counts.coarsen_to(counts.scale - 1);
  std::string out;
  out.push_back(static_cast<char>(counts.scale));
  for (const std::uint64_t count : {counts.zero, counts.nan, counts.posinf, counts.neginf})
    put_varint(out, count);
  put_magnitudes(out, counts.positive);
  put_magnitudes(out, counts.negative);
  return out;
}

std::optional<ExponentialCounts> decode_counts(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  ExponentialCounts out;
  out.scale = static_cast<signed char>(bytes.front());
  if (out.scale > ExponentialCounts::kFinest || out.scale < ExponentialCounts::kCoarsest)
    return std::nullopt;
  CountsReading in{bytes.substr(1)};
  for (std::uint64_t* count : {&out.zero, &out.nan, &out.posinf, &out.neginf}) *count = in.varint();
  out.positive = in.magnitudes();
  out.negative = in.magnitudes();
  return in.good && in.bytes.empty() ? std::optional<ExponentialCounts>(std::move(out))
                                     : std::nullopt;
}

}  // namespace tocsin::insights
