// The parsers: recorded files, other kernels' forms, and damage.
#include "collectors/node/procfs.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/unit/collectors/fake_tree.h"

namespace tocsin::collectors {
namespace {

constexpr std::size_t at(CpuMode mode) { return static_cast<std::size_t>(mode); }

TEST(Procfs, ReadsTheProcessorsOfARealMachine) {
  std::vector<CpuTimes> times;
  parse_cpu_times(slurp(recorded("first").proc + "/stat"), times);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].cpu, 0U);
  EXPECT_EQ(times[1].cpu, 1U);
  EXPECT_GT(times[1].ticks[at(CpuMode::idle)], times[1].ticks[at(CpuMode::iowait)]);
}

TEST(Procfs, ReadsProcessorsOfEveryKernel) {
  std::vector<CpuTimes> times;
  // Gaps where processors are offline; ten columns now, seven in Linux 2.6.10, four before 2.5.41.
  parse_cpu_times(
      "cpu  9 9 9 9\n"
      "cpu0 1 2 3 4 5 6 7 8 9 10\n"
      "cpu3 1 2 3 4 5 6 7\n"
      "cpu127 1 2 3 4\n"
      "intr 5\n",
      times);
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[0].ticks, (std::array<std::uint64_t, 8>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(times[1].cpu, 3U);
  EXPECT_EQ(times[1].ticks[at(CpuMode::steal)], 0U);
  EXPECT_EQ(times[2].cpu, 127U);
  EXPECT_EQ(times[2].ticks[at(CpuMode::iowait)], 0U);
}

TEST(Procfs, LeavesOutDamagedProcessors) {
  std::vector<CpuTimes> times;
  parse_cpu_times("cpu  1 1 1 1\ncpu0 1 2\ncpux 1 2 3 4\ncpu1 1 2 3 -4\ncpu2 1 2 3 4", times);
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].cpu, 2U);
}

TEST(Procfs, ReadsMemoryInBytes) {
  const Meminfo real = parse_meminfo(slurp(recorded("first").proc + "/meminfo"));
  ASSERT_TRUE(real.total && real.free && real.available && real.slab_reclaimable);
  EXPECT_EQ(*real.total, 24684092ULL * 1024);
  EXPECT_LT(*real.free, *real.total);
  const Meminfo old = parse_meminfo("MemTotal:  100 kB\nMemFree: 40 kB\nCached: x kB\n");
  EXPECT_EQ(old.free, 40U * 1024);
  EXPECT_FALSE(old.available);
  EXPECT_FALSE(old.cached);
}

TEST(Procfs, ReadsInterfaces) {
  std::vector<InterfaceBytes> interfaces;
  const std::string real = slurp(recorded("first").proc + "/net/dev");
  parse_interfaces(real, interfaces);
  ASSERT_EQ(interfaces.size(), 4U);
  EXPECT_EQ(interfaces[0].name, "lo");
  EXPECT_EQ(interfaces[0].received, interfaces[0].transmitted);
  EXPECT_EQ(interfaces[3].name, "eth0");
  EXPECT_GT(interfaces[3].received, 0U);
  // No blank behind the colon (before Linux 2.6.31), and an alias with a colon of its own.
  const std::string old =
      "  eth0:1234 5 0 0 0 0 0 0 99 3 0 0 0 0 0 0\neth0:1: 7 0 0 0 0 0 0 0 8 0 0 0 0 0 0 0\n"
      "broken: 1 2\n";
  parse_interfaces(old, interfaces);
  ASSERT_EQ(interfaces.size(), 2U);
  EXPECT_EQ(interfaces[0].received, 1234U);
  EXPECT_EQ(interfaces[0].transmitted, 99U);
  EXPECT_EQ(interfaces[1].name, "eth0:1");
}

TEST(Procfs, ReadsDisks) {
  std::vector<DiskBytes> disks;
  const std::string text =
      " 259 0 nvme0n1 10 0 2048 5 20 0 4096 7 0 9 12\n"
      "   8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n"
      "   8 1 sda1 1 2 3\n";
  parse_disks(text, disks);
  ASSERT_EQ(disks.size(), 2U);
  EXPECT_EQ(disks[0].read, 2048U * 512);
  EXPECT_EQ(disks[0].written, 4096U * 512);
  EXPECT_EQ(disks[1].written, 7U * 512);
}

TEST(Procfs, KnowsWholeDisks) {
  for (const char* whole : {"sda", "sdaa", "vda", "xvda", "nvme0n1", "nvme10n2", "mmcblk0", "md0",
                            "dm-3", "sr0", "nbd1", "7"}) {
    EXPECT_TRUE(is_whole_disk(whole)) << whole;
  }
  for (const char* part : {"sda1", "sdaa15", "vda2", "xvdf1", "nvme0n1p1", "mmcblk0p2", "loop0",
                           "loop0p1", "ram3", "zram0", "fd0"}) {
    EXPECT_FALSE(is_whole_disk(part)) << part;
  }
}

TEST(Procfs, ReadsTheBytesOfAProcess) {
  const auto io = parse_process_io("rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\n");
  ASSERT_TRUE(io);
  EXPECT_EQ(io->read, 4096U);
  EXPECT_EQ(io->written, 8192U);
  EXPECT_FALSE(parse_process_io("rchar: 1\n"));
}

TEST(Procfs, CountsProcessorLists) {
  EXPECT_EQ(count_cpu_list("0-1\n"), 2U);
  EXPECT_EQ(count_cpu_list("0-3,8,10-11\n"), 7U);
  EXPECT_EQ(count_cpu_list("5"), 1U);
  for (const char* bad : {"", "\n", "3-1", "a-b", "0-,1", "0-99999999"}) {
    EXPECT_FALSE(count_cpu_list(bad)) << bad;
  }
}

TEST(Procfs, ReadsControlGroups) {
  const std::string text = "usage_usec 123456\nuser_usec 1\nthrottled_usec 7\n";
  EXPECT_EQ(parse_keyed(text, "usage_usec"), 123456U);
  EXPECT_EQ(parse_keyed(text, "throttled_usec"), 7U);
  EXPECT_FALSE(parse_keyed(text, "usage"));
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_FALSE(parse_cpu_max("max 100000\n"));
  EXPECT_FALSE(parse_cpu_max("150000 0\n"));
  EXPECT_EQ(parse_cgroup_path("4:memory:/x\n0::/kubepods/pod1\n"), "/kubepods/pod1");
  EXPECT_EQ(parse_cgroup_path("0::/\n"), "/");
  EXPECT_FALSE(parse_cgroup_path("4:memory:/x\n"));
}

// Whatever a file holds, the parsers come back, and with nothing they did not read.
TEST(Procfs, SurvivesAnyText) {
  const std::string seed = slurp(recorded("first").proc + "/stat").substr(0, 300) +
                           slurp(recorded("first").proc + "/net/dev") +
                           slurp(recorded("first").proc + "/diskstats");
  std::mt19937 generator(5);
  for (int round = 0; round < 2000; ++round) {
    std::string text = seed.substr(generator() % seed.size(), generator() % 400);
    for (int change = 0; change < 5 && !text.empty(); ++change) {
      text[generator() % text.size()] = static_cast<char>(generator() % 256);
    }
    std::vector<CpuTimes> times;
    std::vector<InterfaceBytes> interfaces;
    std::vector<DiskBytes> disks;
    parse_cpu_times(text, times);
    parse_interfaces(text, interfaces);
    parse_disks(text, disks);
    parse_meminfo(text);
    count_cpu_list(text);
    parse_cpu_max(text);
    EXPECT_LE(times.size() + interfaces.size() + disks.size(), text.size());
  }
}

}  // namespace
}  // namespace tocsin::collectors
