// Which sanitizer this was compiled with, for tests that one of them cannot carry.
#pragma once

#if !defined(__has_feature)
#define __has_feature(name) 0  // GCC before 14
#endif

namespace tocsin::tests {

/// AddressSanitizer's allocator of Clang 14 does not survive the fork of a process with threads:
/// the child may wait for ever for a lock that a thread of the parent held. ThreadSanitizer ends a
/// child that starts threads.
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || \
    defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
inline constexpr bool kForksSafely = false;
#else
inline constexpr bool kForksSafely = true;
#endif

/// ThreadSanitizer does not see a raw clone: it takes the child, which is alone, for a thread of
/// its parent.
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
inline constexpr bool kKnowsRawClones = false;
#else
inline constexpr bool kKnowsRawClones = true;
#endif

}  // namespace tocsin::tests
