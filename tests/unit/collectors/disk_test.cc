// Bytes per disk.
#include <gtest/gtest.h>

#include "tests/unit/collectors/fake_tree.h"

namespace tocsin::collectors {
namespace {

TEST(DiskCollector, CountsWholeDisksInBytes) {
  const FakeTree tree;
  tree.write("proc/diskstats",
             "   7 0 loop0 5 0 50 0 0 0 0 0 0 0 0\n"
             " 259 0 nvme0n1 10 0 2048 5 20 0 4096 7 0 9 12\n"
             " 259 1 nvme0n1p1 10 0 2048 5 20 0 4096 7 0 9 12\n");
  OneCollector disk("disk", tree.roots());
  ASSERT_TRUE(disk.sweep());
  EXPECT_EQ(disk.counters.size(), 2U);
  EXPECT_EQ(disk.counters["system.disk.io{disk.io.direction=read,system.device=nvme0n1}"],
            2048 * 512);
  EXPECT_EQ(disk.counters["system.disk.io{disk.io.direction=write,system.device=nvme0n1}"],
            4096 * 512);
}

TEST(DiskCollector, ReadsARealMachine) {
  OneCollector disk("disk", recorded("first"));
  ASSERT_TRUE(disk.sweep());
  EXPECT_EQ(disk.values.size(), 2U);
  EXPECT_GT(disk.values["system.disk.io{disk.io.direction=read,system.device=vda}"], 0);
}

TEST(DiskCollector, AMachineWithoutDisksIsFine) {
  const FakeTree tree;
  tree.write("proc/diskstats", "");
  OneCollector disk("disk", tree.roots());
  EXPECT_TRUE(disk.sweep());
  EXPECT_TRUE(disk.values.empty());
}

TEST(DiskCollector, SaysWhatItCouldNotRead) {
  const FakeTree tree;
  OneCollector disk("disk", tree.roots());
  EXPECT_EQ(disk.sweep().error().code, core::Code::not_found);
}

}  // namespace
}  // namespace tocsin::collectors
