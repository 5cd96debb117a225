// The default floating-point environment for the life of a scope.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tocsin::collectors {

/// Rounds to nearest, keeps denormals and masks exceptions while it lives, then restores what was
/// there, status flags too. Frameworks switch flush-to-zero on for a thread (and libraries built
/// with -ffast-math do it for the whole process): a denormal must still not count as a zero.
class DefaultFloatEnvironment {
 public:
#if defined(__x86_64__)
  DefaultFloatEnvironment() noexcept : saved_(_mm_getcsr()) { _mm_setcsr(0x1F80); }
  ~DefaultFloatEnvironment() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  DefaultFloatEnvironment() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
  }
  ~DefaultFloatEnvironment() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
  DefaultFloatEnvironment() noexcept = default;
  ~DefaultFloatEnvironment() = default;
#endif
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  unsigned saved_;
#elif defined(__aarch64__)
  std::uint64_t saved_ = 0;
#endif
};

}  // namespace tocsin::collectors
