// Our control group against its limits.
#include <gtest/gtest.h>

#include "tests/unit/collectors/fake_tree.h"

namespace tocsin::collectors {
namespace {

using namespace std::chrono_literals;

void group(const FakeTree& tree, const std::string& folder, const std::string& usage) {
  tree.write(folder + "/cpu.stat", "usage_usec " + usage + "\nthrottled_usec 1500000\n");
  tree.write(folder + "/memory.current", "1048576\n");
  tree.write(folder + "/memory.events", "low 0\noom 2\noom_kill 1\n");
}

TEST(ContainerCollector, DividesByTheQuota) {
  const FakeTree tree;
  tree.write("proc/self/cgroup", "0::/kubepods/pod1\n");
  group(tree, "sys/fs/cgroup/kubepods/pod1", "1000000");
  tree.write("sys/fs/cgroup/kubepods/pod1/cpu.max", "150000 100000\n");
  tree.write("sys/fs/cgroup/kubepods/pod1/memory.max", "4194304\n");
  OneCollector container("container", tree.roots());
  ASSERT_TRUE(container.sweep());
  EXPECT_EQ(container.values.count("container.cpu.utilization"), 0U);
  EXPECT_EQ(container.values["container.memory.usage"], 1048576);
  EXPECT_EQ(container.values["tocsin.cgroup.memory.limit"], 4194304);
  EXPECT_EQ(container.counters["tocsin.cgroup.cpu.throttled"], 1.5);
  EXPECT_EQ(container.counters["tocsin.cgroup.memory.oom_kill"], 1);
  group(tree, "sys/fs/cgroup/kubepods/pod1", "2500000");
  ASSERT_TRUE(container.sweep(2s));
  // 1.5 s of processor in 2 s with 1.5 processors.
  EXPECT_DOUBLE_EQ(container.values["container.cpu.utilization"], 0.5);
}

TEST(ContainerCollector, DividesByItsProcessorsWithoutAQuota) {
  const FakeTree tree;
  tree.write("proc/self/cgroup", "4:memory:/x\n0::/\n");
  group(tree, "sys/fs/cgroup", "0");
  tree.write("sys/fs/cgroup/cpu.max", "max 100000\n");
  tree.write("sys/fs/cgroup/memory.max", "max\n");
  tree.write("sys/fs/cgroup/cpuset.cpus.effective", "0-3\n");
  OneCollector container("container", tree.roots());
  ASSERT_TRUE(container.sweep());
  EXPECT_EQ(container.values.count("tocsin.cgroup.memory.limit"), 0U);
  group(tree, "sys/fs/cgroup", "1000000");
  ASSERT_TRUE(container.sweep(1s));
  EXPECT_DOUBLE_EQ(container.values["container.cpu.utilization"], 0.25);
}

TEST(ContainerCollector, FindsItsGroupWhereTheMountShowsOnlyThat) {
  const FakeTree tree;
  tree.write("proc/self/cgroup", "0::/deep/path/of/the/host\n");
  group(tree, "sys/fs/cgroup", "7");
  tree.write("sys/devices/system/cpu/online", "0-1\n");
  OneCollector container("container", tree.roots());
  ASSERT_TRUE(container.sweep());
  group(tree, "sys/fs/cgroup", "1000007");
  ASSERT_TRUE(container.sweep(1s));
  EXPECT_DOUBLE_EQ(container.values["container.cpu.utilization"], 0.5);
}

TEST(ContainerCollector, IsAbsentOnAVersionOneHost) {
  OneCollector container("container", recorded("first"));
  const core::Status status = container.sweep();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, core::Code::not_found);
}

}  // namespace
}  // namespace tocsin::collectors
