#include "collectors/hook/identity/launch.h"

#include <gtest/gtest.h>

#include <map>

namespace tocsin::hook {
namespace {

class LaunchTest : public ::testing::Test {
 protected:
  std::string key(std::map<std::string, std::string> variables, bool one_host = true,
                  std::string_view seed = "") {
    const Variables::Lookup lookup = [&](const std::string& name) -> std::optional<std::string> {
      const auto at = variables.find(name);
      return at == variables.end() ? std::nullopt : std::optional(at->second);
    };
    return launch_key({seed, "boot", "50/3", 0, one_host}, Variables(lookup));
  }
};

TEST_F(LaunchTest, WhatTheUserSaysComesFirst) {
  EXPECT_EQ(key({{"TOCSIN_ATTEMPT", "4"}, {"TOCSIN_LAUNCH", "x"}, {"SLURM_JOB_ID", "7"}}),
            "attempt:4");
  EXPECT_EQ(key({{"TOCSIN_LAUNCH", "x"}, {"TORCHELASTIC_RUN_ID", "none"}}), "launch:x");
}

TEST_F(LaunchTest, RestartsBelowOneTocsinRunAreLaunchesOfTheirOwn) {
  EXPECT_NE(key({{"TOCSIN_LAUNCH", "x"}, {"TORCHELASTIC_RESTART_COUNT", "0"}}),
            key({{"TOCSIN_LAUNCH", "x"}, {"TORCHELASTIC_RESTART_COUNT", "1"}}));
}

TEST_F(LaunchTest, LauncherGivesIdRestartsAndRendezvous) {
  EXPECT_EQ(key({{"TORCHELASTIC_RUN_ID", "abc"},
                 {"TORCHELASTIC_RESTART_COUNT", "2"},
                 {"MASTER_ADDR", "10.0.0.1"},
                 {"MASTER_PORT", "1234"}},
                false, "torchelastic:abc"),
            "torchelastic:abc/2@10.0.0.1:1234");
  EXPECT_EQ(key({{"TORCHELASTIC_RUN_ID", "none"}, {"SLURM_STEP_ID", "1"}}, false, "slurm:c/7"),
            "slurm:c/7.1+torchelastic:none");
}

TEST_F(LaunchTest, OneHostSharesTheParentProcessAndSeveralShareNothing) {
  EXPECT_EQ(key({}), "local:boot/50/3");
  EXPECT_EQ(key({}, false), "");
}

TEST(LaunchMark, BindsToTheBootAndToTheMomentOfOpening) {
  const std::string boot = "1f0c93ab-0000-4000-8000-000000000000";
  EXPECT_TRUE(marks_at_least("1f0c93ab/81402", boot, 81'402));
  EXPECT_TRUE(marks_at_least("1f0c93ab/81403", boot, 81'402));
  EXPECT_FALSE(marks_at_least("1f0c93ab/81401", boot, 81'402));
  EXPECT_FALSE(marks_at_least("2f0c93ab/81402", boot, 81'402));
  EXPECT_FALSE(marks_at_least("1f0c93ab/", boot, 0));
  EXPECT_FALSE(marks_at_least("1f0c93ab/-", boot, 0));
  EXPECT_FALSE(marks_at_least("", boot, 0));
  EXPECT_FALSE(marks_at_least("/81402", "", 0));
}

}  // namespace
}  // namespace tocsin::hook
