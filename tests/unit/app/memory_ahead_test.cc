// A thread that reads a large state finds its memory cleared.
#include "app/process/memory_ahead.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "app/process/allocator.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// How often this thread has met a page that nobody had used before.
long faults() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_minflt;
}

bool system_clears_ahead() {
#if defined(MADV_POPULATE_WRITE) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool out = madvise(page, 4096, MADV_POPULATE_WRITE) == 0;
  munmap(page, 4096);
  return out;
#else
  return false;
#endif
}

void wait_for_cleared(MemoryAhead& memory, std::size_t bytes) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (memory.cleared() < bytes && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(1ms);
  }
}

/// Of a thread that uses three megabytes in small pieces, once they have been cleared.
long faults_of_three_megabytes() {
  long out = 0;
  std::thread([&] {
    MemoryAhead memory;
    memory.take();
    wait_for_cleared(memory, 3 * kMiB);
    EXPECT_GE(memory.cleared(), 3 * kMiB);
    std::vector<std::unique_ptr<char[]>> pieces;
    pieces.reserve(3000);
    const long before = faults();
    for (int i = 0; i < 3000; ++i) pieces.push_back(std::make_unique<char[]>(1000));
    out = faults() - before;
  }).join();
  return out;
}

TEST(MemoryAhead, WhatIsUsedAfterwardsHasBeenCleared) {
  keep_freed_memory();
  if (!system_clears_ahead()) GTEST_SKIP() << "the system or the allocator cannot";
  EXPECT_LT(faults_of_three_megabytes(), 50);  // else 730
}

TEST(MemoryAhead, ClearsWhatIsNewEachTimeAndNothingTwice) {
  keep_freed_memory();
  if (!system_clears_ahead()) GTEST_SKIP() << "the system or the allocator cannot";
  std::thread([] {
    MemoryAhead memory;
    memory.take();
    wait_for_cleared(memory, 4 * kMiB);
    EXPECT_EQ(memory.cleared(), 4 * kMiB);
    memory.take();
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(memory.cleared(), 4 * kMiB) << "nothing of it was used in between";
    // Where other threads have left free memory, what is used is not at once what was taken.
    std::vector<std::unique_ptr<char[]>> pieces;
    for (int i = 0; i < 200'000 && memory.cleared() == 4 * kMiB; ++i) {
      pieces.push_back(std::make_unique<char[]>(1000));
      if (i % 500 != 499) continue;
      memory.take();
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_GT(memory.cleared(), 4 * kMiB);
    EXPECT_LE(memory.cleared(), 4 * kMiB + pieces.size() * 1100) << "what was used, and no more";
  }).join();
}

TEST(MemoryAhead, ASmallStateStartsNoThread) {
  keep_freed_memory();
  MemoryAhead memory;
  for (int i = 0; i < 100; ++i) memory.reading(2000);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(memory.cleared(), 0U);
}

}  // namespace
}  // namespace tocsin::app
