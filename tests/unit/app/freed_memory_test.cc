// What a process frees goes back to the system once it is quiet.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <memory>
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

}  // namespace
}  // namespace tocsin::app
