#include "app/process/allocator.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>  // says whether this is glibc
#include <ctime>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tocsin::app {
namespace {

std::atomic<bool> keeps_freed{false};

}  // namespace

void keep_freed_memory() noexcept {
#ifdef __GLIBC__
  keeps_freed = true;
  constexpr int kMiB = 1 << 20;
  // Beyond it a block is the system's own; the library itself takes nothing above 32 MiB.
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);
  mallopt(M_TRIM_THRESHOLD, 64 * kMiB);
#endif
}

std::span<std::byte> take_memory_ahead() noexcept {
#ifdef __GLIBC__
  // Freed at once, it stays at the end of this thread's heap; else it would come and go.
  if (!keeps_freed) return {};
  constexpr std::size_t kAhead = std::size_t{4} << 20;
  void* volatile ahead = std::malloc(kAhead);  // volatile: or the compiler takes both calls away
  auto* const begin = static_cast<std::byte*>(ahead);
  std::free(ahead);
  // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): where it was, not what is there
  return {begin, begin == nullptr ? 0 : kAhead};
#else
  return {};
#endif
}

bool FreedMemory::look(std::chrono::nanoseconds processor_time) noexcept {
  constexpr std::chrono::milliseconds kBurst{1000};
  constexpr std::chrono::milliseconds kQuiet{100};
  const auto used = processor_time - before_;
  before_ = processor_time;
  if (used > kQuiet || processor_time - given_back_at_ < kBurst) return false;
  given_back_at_ = processor_time;
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return true;
}

bool FreedMemory::look() noexcept {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return look(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace tocsin::app
