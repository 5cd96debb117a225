// Shares of processor time between two sweeps.
#include <gtest/gtest.h>

#include "tests/unit/collectors/fake_tree.h"

namespace tocsin::collectors {
namespace {

std::string name(int cpu, const std::string& mode) {
  return "system.cpu.utilization{cpu.logical_number=" + std::to_string(cpu) + ",cpu.mode=" + mode +
         "}";
}

TEST(CpuCollector, NeedsTwoSweepsForAShare) {
  const FakeTree tree;
  OneCollector cpu("cpu", tree.roots());
  tree.write("proc/stat", "cpu  0\ncpu0 100 0 50 800 10 0 0 0 0 0\n");
  ASSERT_TRUE(cpu.sweep());
  EXPECT_TRUE(cpu.values.empty());
  tree.write("proc/stat", "cpu  0\ncpu0 125 5 60 850 14 1 2 3 0 0\n");
  ASSERT_TRUE(cpu.sweep());
  EXPECT_EQ(cpu.values.size(), 8U);
  EXPECT_DOUBLE_EQ(cpu.values[name(0, "user")], 0.25);
  EXPECT_DOUBLE_EQ(cpu.values[name(0, "nice")], 0.05);
  EXPECT_DOUBLE_EQ(cpu.values[name(0, "system")], 0.10);
  EXPECT_DOUBLE_EQ(cpu.values[name(0, "idle")], 0.50);
  EXPECT_DOUBLE_EQ(cpu.values[name(0, "iowait")], 0.04);
  EXPECT_DOUBLE_EQ(cpu.values[name(0, "irq")], 0.01);
  EXPECT_DOUBLE_EQ(cpu.values[name(0, "softirq")], 0.02);
  EXPECT_DOUBLE_EQ(cpu.values[name(0, "steal")], 0.03);
  EXPECT_TRUE(cpu.counters.empty());
}

// XXH64 of the series name as published in the wire format's vectors.
TEST(CpuCollector, SpellsItsSeriesAsTheWireDoes) {
  EXPECT_EQ(core::name_hash(name(3, "user")), 0xb9484f8897e70112U);
}

TEST(CpuCollector, SharesOfARealMachineAddUpToOne) {
  const FakeTree tree;
  OneCollector cpu("cpu", tree.roots());
  tree.write("proc/stat", slurp(recorded("first").proc + "/stat"));
  ASSERT_TRUE(cpu.sweep());
  tree.write("proc/stat", slurp(recorded("second").proc + "/stat"));
  ASSERT_TRUE(cpu.sweep());
  ASSERT_EQ(cpu.values.size(), 16U);
  for (const int number : {0, 1}) {
    double sum = 0;
    for (const auto mode :
         {"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}) {
      sum += cpu.values[name(number, mode)];
    }
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

TEST(CpuCollector, AProcessorThatComesAndGoesStartsAnew) {
  const FakeTree tree;
  OneCollector cpu("cpu", tree.roots());
  tree.write("proc/stat", "cpu0 10 0 0 10\ncpu1 500 0 0 500\n");
  ASSERT_TRUE(cpu.sweep());
  tree.write("proc/stat", "cpu0 20 0 0 20\n");  // 1 went offline
  ASSERT_TRUE(cpu.sweep());
  EXPECT_EQ(cpu.values.size(), 8U);
  tree.write("proc/stat", "cpu0 30 0 0 30\ncpu1 3 0 0 1\ncpu2 9 0 0 9\n");
  ASSERT_TRUE(cpu.sweep());
  EXPECT_EQ(cpu.values.size(), 8U);  // 1 and 2 need a sweep before them
  tree.write("proc/stat", "cpu0 40 0 0 40\ncpu1 6 0 0 2\ncpu2 9 0 0 19\n");
  ASSERT_TRUE(cpu.sweep());
  EXPECT_EQ(cpu.values.size(), 24U);
  EXPECT_DOUBLE_EQ(cpu.values[name(1, "user")], 0.75);
  EXPECT_DOUBLE_EQ(cpu.values[name(2, "idle")], 1);
}

TEST(CpuCollector, ACounterThatWasResetSaysNothingOnce) {
  const FakeTree tree;
  OneCollector cpu("cpu", tree.roots());
  tree.write("proc/stat", "cpu0 1000 0 0 1000\n");
  ASSERT_TRUE(cpu.sweep());
  tree.write("proc/stat", "cpu0 5 0 0 2000\n");
  ASSERT_TRUE(cpu.sweep());
  EXPECT_TRUE(cpu.values.empty());
  tree.write("proc/stat", "cpu0 6 0 0 2003\n");
  ASSERT_TRUE(cpu.sweep());
  EXPECT_DOUBLE_EQ(cpu.values[name(0, "user")], 0.25);
}

TEST(CpuCollector, AnIowaitThatStepsBackIsZero) {
  const FakeTree tree;
  OneCollector cpu("cpu", tree.roots());
  tree.write("proc/stat", "cpu0 10 0 0 10 5\n");
  ASSERT_TRUE(cpu.sweep());
  tree.write("proc/stat", "cpu0 11 0 0 11 4\n");
  ASSERT_TRUE(cpu.sweep());
  EXPECT_EQ(cpu.values[name(0, "iowait")], 0);
  EXPECT_DOUBLE_EQ(cpu.values[name(0, "user")], 0.5);
}

TEST(CpuCollector, NoTickNoStatement) {
  const FakeTree tree;
  OneCollector cpu("cpu", tree.roots());
  tree.write("proc/stat", "cpu0 10 0 0 10\n");
  ASSERT_TRUE(cpu.sweep());
  ASSERT_TRUE(cpu.sweep());
  EXPECT_TRUE(cpu.values.empty());
}

TEST(CpuCollector, SaysWhatItCouldNotRead) {
  const FakeTree tree;
  OneCollector cpu("cpu", tree.roots());
  const core::Status missing = cpu.sweep();
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, core::Code::not_found);
  tree.write("proc/stat", "intr 5\n");
  const core::Status damaged = cpu.sweep();
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, core::Code::data_loss);
}

}  // namespace
}  // namespace tocsin::collectors
