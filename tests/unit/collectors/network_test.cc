// Bytes per interface.
#include <gtest/gtest.h>

#include "tests/unit/collectors/fake_tree.h"

namespace tocsin::collectors {
namespace {

constexpr const char* kHead = "Inter-| Receive | Transmit\n face |bytes packets |bytes packets\n";

std::string line(const std::string& name, int received, int transmitted) {
  return name + ": " + std::to_string(received) + " 1 0 0 0 0 0 0 " + std::to_string(transmitted) +
         " 1 0 0 0 0 0 0\n";
}

std::string series(const std::string& name, const std::string& direction) {
  return "system.network.io{network.interface.name=" + name + ",network.io.direction=" + direction +
         "}";
}

TEST(NetworkCollector, CountsEveryInterfaceButTheLoopback) {
  const FakeTree tree;
  tree.write("proc/net/dev", kHead + line("lo", 9, 9) + line("eth0", 100, 20) + line("ib0", 7, 8));
  OneCollector network("network", tree.roots());
  ASSERT_TRUE(network.sweep());
  EXPECT_EQ(network.counters.size(), 4U);
  EXPECT_EQ(network.counters[series("eth0", "receive")], 100);
  EXPECT_EQ(network.counters[series("eth0", "transmit")], 20);
  EXPECT_EQ(network.counters[series("ib0", "receive")], 7);
}

TEST(NetworkCollector, FollowsInterfacesThatComeGoAndChangePlaces) {
  const FakeTree tree;
  OneCollector network("network", tree.roots());
  tree.write("proc/net/dev", kHead + line("a", 1, 2) + line("b", 3, 4) + line("c", 5, 6));
  ASSERT_TRUE(network.sweep());
  tree.write("proc/net/dev", kHead + line("d", 7, 8) + line("c", 50, 60) + line("a", 10, 20));
  ASSERT_TRUE(network.sweep());
  EXPECT_EQ(network.values.size(), 6U);
  EXPECT_EQ(network.values[series("a", "transmit")], 20);
  EXPECT_EQ(network.values[series("c", "receive")], 50);
  EXPECT_EQ(network.values[series("d", "receive")], 7);
  tree.write("proc/net/dev", kHead + line("a", 11, 21) + line("b", 0, 1));
  ASSERT_TRUE(network.sweep());
  EXPECT_EQ(network.values.size(), 4U);
  EXPECT_EQ(network.values[series("b", "transmit")], 1);
}

TEST(NetworkCollector, LeavesOutWhatItIsTold) {
  const FakeTree tree;
  tree.write("proc/net/dev", kHead + line("lo", 9, 9) + line("eth0", 1, 2) + line("veth1", 3, 4) +
                                 line("veth2", 5, 6) + line("docker0", 7, 8));
  OneCollector network("network", tree.roots(), "skip: [docker0, veth*]");
  ASSERT_TRUE(network.sweep());
  EXPECT_EQ(network.values.size(), 4U);  // eth0, and lo, which the list does not name any more
  EXPECT_EQ(network.values.count(series("lo", "receive")), 1U);
  EXPECT_EQ(network.values.count(series("eth0", "receive")), 1U);
}

TEST(NetworkCollector, ReadsARealMachine) {
  OneCollector network("network", recorded("second"));
  ASSERT_TRUE(network.sweep());
  EXPECT_EQ(network.values.size(), 6U);
  EXPECT_GT(network.values[series("eth0", "receive")], 0);
}

TEST(NetworkCollector, SaysWhatItCouldNotRead) {
  const FakeTree tree;
  OneCollector network("network", tree.roots());
  EXPECT_EQ(network.sweep().error().code, core::Code::not_found);
  tree.write("proc/net/dev", kHead);
  EXPECT_EQ(network.sweep().error().code, core::Code::data_loss);
}

}  // namespace
}  // namespace tocsin::collectors
