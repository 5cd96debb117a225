// Where a plain text of JSON ends, found sixteen bytes at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tocsin::ingest {

/// Whether a text of JSON may hold this byte as it is, in printable ASCII.
constexpr bool plain(char c) noexcept { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

/// The first byte of [at, end) that is not plain(); `end`: all are.
inline const char* past_plain(const char* at, const char* end) noexcept {
#if defined(__SSE2__)
  const __m128i space = _mm_set1_epi8(0x20);
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i rubout = _mm_set1_epi8(0x7f);
  for (; end - at >= 16; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    // As signed numbers, bytes above 0x7f are below 0x20 too.
    const __m128i other =
        _mm_or_si128(_mm_or_si128(_mm_cmplt_epi8(bytes, space), _mm_cmpeq_epi8(bytes, rubout)),
                     _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)));
    const auto found = static_cast<unsigned>(_mm_movemask_epi8(other));
    if (found != 0) return at + std::countr_zero(found);
  }
#endif
  while (at != end && plain(*at)) ++at;
  return at;
}

}  // namespace tocsin::ingest
