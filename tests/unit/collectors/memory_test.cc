// Memory by state.
#include <gtest/gtest.h>

#include "tests/unit/collectors/fake_tree.h"

namespace tocsin::collectors {
namespace {

TEST(MemoryCollector, StatesAddUpToTheTotal) {
  const FakeTree tree;
  tree.write("proc/meminfo",
             "MemTotal: 1000 kB\nMemFree: 250 kB\nMemAvailable: 600 kB\nBuffers: 50 kB\n"
             "Cached: 200 kB\nSReclaimable: 100 kB\n");
  OneCollector memory("memory", tree.roots());
  ASSERT_TRUE(memory.sweep());
  EXPECT_EQ(memory.values["system.memory.usage{system.memory.state=used}"], 400 * 1024);
  EXPECT_EQ(memory.values["system.memory.usage{system.memory.state=free}"], 250 * 1024);
  EXPECT_EQ(memory.values["system.memory.usage{system.memory.state=buffers}"], 50 * 1024);
  EXPECT_EQ(memory.values["system.memory.usage{system.memory.state=cached}"], 300 * 1024);
  EXPECT_DOUBLE_EQ(memory.values["system.memory.utilization{system.memory.state=used}"], 0.4);
  EXPECT_DOUBLE_EQ(memory.values["system.memory.utilization{system.memory.state=cached}"], 0.3);
  EXPECT_EQ(memory.values["system.memory.limit"], 1000 * 1024);
  EXPECT_EQ(memory.values["system.linux.memory.available"], 600 * 1024);
  EXPECT_TRUE(memory.counters.empty());
}

TEST(MemoryCollector, ReadsARealMachine) {
  OneCollector memory("memory", recorded("first"));
  ASSERT_TRUE(memory.sweep());
  EXPECT_EQ(memory.values.size(), 10U);
  const double used = memory.values["system.memory.utilization{system.memory.state=used}"];
  EXPECT_GT(used, 0.01);
  EXPECT_LT(used, 0.99);
}

TEST(MemoryCollector, LeavesOutWhatAnOldKernelDoesNotSay) {
  const FakeTree tree;
  tree.write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 250 kB\n");
  OneCollector memory("memory", tree.roots());
  ASSERT_TRUE(memory.sweep());
  EXPECT_EQ(memory.values.count("system.linux.memory.available"), 0U);
  EXPECT_EQ(memory.values["system.memory.usage{system.memory.state=used}"], 750 * 1024);
}

TEST(MemoryCollector, NeverBelowZeroWhereThePartsExceedTheTotal) {
  const FakeTree tree;
  tree.write("proc/meminfo", "MemTotal: 100 kB\nMemFree: 90 kB\nCached: 20 kB\n");
  OneCollector memory("memory", tree.roots());
  ASSERT_TRUE(memory.sweep());
  EXPECT_EQ(memory.values["system.memory.usage{system.memory.state=used}"], 0);
}

TEST(MemoryCollector, SaysWhatItCouldNotRead) {
  const FakeTree tree;
  OneCollector memory("memory", tree.roots());
  EXPECT_EQ(memory.sweep().error().code, core::Code::not_found);
  tree.write("proc/meminfo", "MemTotal: 0 kB\nMemFree: 0 kB\n");
  EXPECT_EQ(memory.sweep().error().code, core::Code::data_loss);
}

}  // namespace
}  // namespace tocsin::collectors
