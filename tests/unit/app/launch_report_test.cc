#include <gtest/gtest.h>

#include "app/cli/run_command.h"

namespace tocsin::app {
namespace {

const std::string kOpened =
    R"({"event":"opened","run":"4e3046d4-8c1f-5278-82e3-ea3595bc5999","attempt":7,"worker":"worker_0",)"
    R"("incarnation":"1767320000000000001","pid":100,"pid_start":5,"boot_id":"b"})"
    "\n";
const std::string kStopping = R"({"event":"stopping","incarnation":"1767320000000000001"})"
                              "\n";
const std::string kEnded = R"({"event":"ended","incarnation":"1767320000000000001","told":true})"
                           "\n";
constexpr int exited(int code) { return code << 8; }

TEST(LaunchReport, WorkersAndWhoHasSpoken) {
  const LaunchReport open = read_launch_report(kOpened);
  ASSERT_EQ(open.workers.size(), 1U);
  EXPECT_EQ(open.workers[0].incarnation, 1'767'320'000'000'000'001U);
  EXPECT_EQ(open.workers[0].attempt, 7U);
  EXPECT_EQ(open.workers[0].pid, 100);
  EXPECT_FALSE(open.workers[0].told);
  EXPECT_TRUE(read_launch_report(kOpened + kEnded).workers[0].told);
}

TEST(LaunchReport, WhatIsNoReportIsPassedOver) {
  const std::string deep(100'000, '[');
  EXPECT_EQ(read_launch_report("\n{}\n[1]\nnonsense\n" + deep + "\n" + kOpened + "{\"event\":")
                .workers.size(),
            1U);
  EXPECT_TRUE(read_launch_report("{\"event\":\"opened\",\"run\":\"x\"}\n").workers.empty());
}

TEST(LaunchReport, StatusOfTheCommandIsOurs) {
  const LaunchReport report = read_launch_report(kOpened);
  EXPECT_EQ(launch_exit_code(exited(0), 100, report), 0);
  EXPECT_EQ(launch_exit_code(exited(3), 100, report), 3);
  EXPECT_EQ(launch_exit_code(9, 100, report), 137);
}

TEST(LaunchReport, StopThatWasAcknowledgedIs77) {
  const LaunchReport report = read_launch_report(kOpened + kStopping + kEnded);
  EXPECT_EQ(launch_exit_code(exited(0), 100, report), 77);
  EXPECT_EQ(launch_exit_code(exited(77), 100, report), 77);
  EXPECT_EQ(launch_exit_code(exited(1), 99, report), 77);  // torchrun above the worker
  EXPECT_EQ(launch_exit_code(exited(1), 100, report), 1);  // the script itself failed
  EXPECT_EQ(launch_exit_code(exited(4), 99, report), 4);
  EXPECT_EQ(launch_exit_code(15, 99, report), 143);
}

TEST(LaunchReport, WhatWasStartedAgainAfterAStopWasNotStopped) {
  EXPECT_EQ(launch_exit_code(exited(0), 99, read_launch_report(kOpened + kStopping + kOpened)), 0);
}

}  // namespace
}  // namespace tocsin::app
