// How the C library's allocator treats what a serving process frees.
#pragma once

namespace tocsin::app {

/// Freed memory stays with the process for its next use, up to 64 MiB per heap, in place of going back
/// to the system and being faulted in again: what Kafka's client unpacks is as large as a batch, and
/// comes and goes for as long as there is something to read. Nothing happens without glibc.
void keep_freed_memory() noexcept;

}  // namespace tocsin::app
