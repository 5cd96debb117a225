#include "ingest/wire/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace tocsin::ingest {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78U;  // reflected

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1U) != 0 ? kPolynomial : 0U);
    }
    table[i] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

[[maybe_unused]] std::uint32_t by_table(const std::byte* data, std::size_t size,
                                        std::uint32_t crc) noexcept {
  for (std::size_t i = 0; i < size; ++i) {
    crc = (crc >> 8) ^ kTable[(crc ^ std::to_integer<std::uint32_t>(data[i])) & 0xFFU];
  }
  return crc;
}

#if defined(__x86_64__)

// Three streams hide the instruction's latency of three cycles. What a stream's CRC becomes after
// the bytes of the streams behind it is a linear map: four tables, one per byte of the CRC.
constexpr std::size_t kStream = 1024;

using ShiftTable = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr ShiftTable make_shift(std::size_t zero_bytes) {
  // Columns of the map "append zero_bytes zeros": each basis bit run through the byte-wise step.
  std::array<std::uint32_t, 32> column{};
  for (std::size_t bit = 0; bit < 32; ++bit) column[bit] = 1U << bit;
  // Square-and-multiply over the one-zero-byte map keeps this cheap enough for the compiler.
  std::array<std::uint32_t, 32> power{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    const std::uint32_t crc = 1U << bit;
    power[bit] = (crc >> 8) ^ kTable[crc & 0xFFU];
  }
  const auto apply = [](const std::array<std::uint32_t, 32>& map, std::uint32_t value) {
    std::uint32_t result = 0;
    for (std::size_t bit = 0; bit < 32; ++bit) {
      if (((value >> bit) & 1U) != 0) result ^= map[bit];
    }
    return result;
  };
  for (std::size_t left = zero_bytes; left != 0; left >>= 1) {
    if ((left & 1U) != 0) {
      for (auto& value : column) value = apply(power, value);
    }
    std::array<std::uint32_t, 32> squared{};
    for (std::size_t bit = 0; bit < 32; ++bit) squared[bit] = apply(power, power[bit]);
    power = squared;
  }
  ShiftTable table{};
  for (std::size_t byte = 0; byte < 4; ++byte) {
    for (std::uint32_t value = 0; value < 256; ++value) {
      table[byte][value] = apply(column, value << (8 * byte));
    }
  }
  return table;
}

std::uint32_t shift(const ShiftTable& table, std::uint32_t crc) noexcept {
  return table[0][crc & 0xFFU] ^ table[1][(crc >> 8) & 0xFFU] ^ table[2][(crc >> 16) & 0xFFU] ^
         table[3][crc >> 24];
}

std::uint64_t load(const std::byte* data) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, data, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(const std::byte* data,
                                                               std::size_t size,
                                                               std::uint32_t crc) noexcept {
  static const ShiftTable kOne = make_shift(kStream);
  static const ShiftTable kTwo = make_shift(2 * kStream);
  std::uint64_t first = crc;
  while (size >= 3 * kStream) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < kStream; i += 8) {
      first = _mm_crc32_u64(first, load(data + i));
      second = _mm_crc32_u64(second, load(data + kStream + i));
      third = _mm_crc32_u64(third, load(data + 2 * kStream + i));
    }
    first = shift(kTwo, static_cast<std::uint32_t>(first)) ^
            shift(kOne, static_cast<std::uint32_t>(second)) ^ third;
    data += 3 * kStream;
    size -= 3 * kStream;
  }
  for (; size >= 8; data += 8, size -= 8) first = _mm_crc32_u64(first, load(data));
  auto tail = static_cast<std::uint32_t>(first);
  for (; size != 0; ++data, --size)
    tail = _mm_crc32_u8(tail, std::to_integer<unsigned char>(*data));
  return tail;
}

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)

std::uint32_t by_instruction(const std::byte* data, std::size_t size, std::uint32_t crc) noexcept {
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof word);
    crc = __crc32cd(crc, word);
  }
  for (; size != 0; ++data, --size) crc = __crc32cb(crc, std::to_integer<std::uint8_t>(*data));
  return crc;
}

#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~by_instruction(bytes.data(), bytes.size(), ~crc);
  return ~by_table(bytes.data(), bytes.size(), ~crc);
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
  return ~by_instruction(bytes.data(), bytes.size(), ~crc);
#else
  return ~by_table(bytes.data(), bytes.size(), ~crc);
#endif
}

}  // namespace tocsin::ingest
