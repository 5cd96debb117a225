// Which sanitizer this was compiled with, for tests that one of them cannot carry.
#pragma once

namespace tocsin::tests {

/// AddressSanitizer's allocator of Clang 14 does not survive the fork of a process with threads:
/// the child may wait for ever for a lock that a thread of the parent held.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kForksSafely = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kForksSafely = false;
#else
inline constexpr bool kForksSafely = true;
#endif
#else
inline constexpr bool kForksSafely = true;
#endif

}  // namespace tocsin::tests
