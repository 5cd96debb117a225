// Only in the self-contained library: what Debian 12's archives ask of a glibc newer than 2.34, in terms of older ones.
#include <sys/random.h>

#include <cstdint>
#include <exception>

// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming): the names are glibc's and the linker's
extern "C" {

/// glibc 2.36. std::random_device of libstdc++ 12 takes its numbers from here.
std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  if (getentropy(&number, sizeof number) != 0)
    std::terminate();  // the kernel has no chance to give
  return number;
}

/// glibc 2.32 says here whether there is one thread only. Archives that were compiled for programs read it in a way that a shared
/// library cannot; false, "there may be several", is always right and costs an atomic instruction.
char __libc_single_threaded = 0;

/// hypot got a second version in 2.35, which differs in how it reports errors. The first is asked for.
#ifdef __x86_64__
__asm__(".symver tocsin_first_hypot, hypot@GLIBC_2.2.5");
#else
__asm__(".symver tocsin_first_hypot, hypot@GLIBC_2.17");
#endif
double tocsin_first_hypot(double x, double y) noexcept;
double __wrap_hypot(double x, double y) noexcept { return tocsin_first_hypot(x, y); }

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)
