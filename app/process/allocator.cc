#include "app/process/allocator.h"

#include <cstdlib>  // says whether this is glibc
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tocsin::app {

void keep_freed_memory() noexcept {
#ifdef __GLIBC__
  constexpr int kMiB = 1 << 20;
  // Beyond it a block is the system's own; the library itself takes nothing above 32 MiB.
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);
  mallopt(M_TRIM_THRESHOLD, 64 * kMiB);
#endif
}

}  // namespace tocsin::app
