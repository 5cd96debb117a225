// What a process frees goes back to the system once it is quiet.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "app/process/allocator.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

TEST(FreedMemory, GoesBackInTheFirstQuietSecondAfterABurst) {
  FreedMemory freed;
  EXPECT_FALSE(freed.look(900ms));    // at work
  EXPECT_FALSE(freed.look(1'900ms));  // still
  EXPECT_TRUE(freed.look(1'950ms));
  EXPECT_FALSE(freed.look(1'960ms)) << "there is nothing new";
  EXPECT_FALSE(freed.look(2'800ms)) << "at work";
  EXPECT_FALSE(freed.look(2'850ms)) << "less than a second of work since the last time";
  EXPECT_FALSE(freed.look(3'300ms));
  EXPECT_TRUE(freed.look(3'310ms));
}

std::size_t resident() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long all = 0;
  unsigned long here = 0;
  const int read = std::fscanf(file, "%lu %lu", &all, &here);
  std::fclose(file);
  return read == 2 ? here * 4096 : 0;
}

TEST(FreedMemory, HolesBetweenWhatStaysGoBackToo) {
  keep_freed_memory();
  std::vector<std::unique_ptr<char[]>> stays;
  std::vector<std::unique_ptr<char[]>> goes;
  for (int i = 0; i < 4'000; ++i) {
    goes.push_back(std::make_unique<char[]>(16'384));
    stays.push_back(std::make_unique<char[]>(64));
  }
  goes.clear();
  const std::size_t before = resident();
  FreedMemory freed;
  ASSERT_FALSE(freed.look(2s));
  ASSERT_TRUE(freed.look(2s));
  EXPECT_LT(resident(), before - 30'000'000) << "64 MB were free";
}

/// Where the writable memory ends in which `place` lies, as the system has it.
std::uintptr_t end_of_memory_at(const void* place) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(place);
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    if (begin <= wanted && wanted < end) return end;
  }
  return 0;
}

/// How often the memory of a thread that has taken it ahead grows while it uses three megabytes of it
/// in small pieces.
std::size_t growths_of_a_thread() {
  std::size_t out = 0;
  std::thread([&] {
    const auto first = std::make_unique<char[]>(100);
    take_memory_ahead();
    std::uintptr_t end = end_of_memory_at(first.get());
    std::vector<std::unique_ptr<char[]>> pieces;
    pieces.reserve(3000);
    for (int i = 0; i < 3000; ++i) {
      pieces.push_back(std::make_unique<char[]>(1000));
      const std::uintptr_t now = end_of_memory_at(first.get());
      out += now != end ? 1 : 0;
      end = now;
    }
  }).join();
  return out;
}

TEST(FreedMemory, AThreadThatTakesMemoryAheadDoesNotAskForEachPage) {
  keep_freed_memory();
  EXPECT_LE(growths_of_a_thread(), 2U);  // else 750, where no thread before it has left it any
}

}  // namespace
}  // namespace tocsin::app
