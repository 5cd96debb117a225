// Which run a person means by a uid, its beginning, a job, or a name.
#include "app/view/which_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;
using Runs = std::map<core::RunUid, core::JobEvent>;

core::JobEvent run_of(const std::string& job, const std::string& name, bool ended = false,
                      int second = 0) {
  core::JobEvent out;
  out.run.uid = core::run_uid_for(job, name);
  out.run.job = job;
  out.phase = ended ? core::JobPhase::ended : core::JobPhase::heartbeat;
  out.time = core::WallTime{} + std::chrono::seconds(second);
  return out;
}

Runs runs_of(std::initializer_list<core::JobEvent> all) {
  Runs out;
  for (const auto& one : all) out.emplace(one.run.uid, one);
  return out;
}

std::string uid(const std::string& job, const std::string& name) {
  return core::to_text(core::run_uid_for(job, name));
}

TEST(WhichRun, ByItsNameAloneWhereOneJobHasARunOfThatName) {
  const Runs runs = runs_of({run_of("digits", "a"), run_of("other", "a"), run_of("other", "b")});
  EXPECT_EQ(core::to_text(which_run(runs, "b", "")->run.uid), uid("other", "b"));
  const auto both = which_run(runs, "a", "");
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message, HasSubstr("2 runs"));
}

TEST(WhichRun, ByUidByItsBeginningAndByName) {
  const Runs runs = runs_of({run_of("digits", "a"), run_of("other", "a")});
  const std::string wanted = uid("digits", "a");
  EXPECT_EQ(core::to_text(which_run(runs, wanted, "")->run.uid), wanted);
  EXPECT_EQ(core::to_text(which_run(runs, wanted.substr(0, 8), "")->run.uid), wanted);
  EXPECT_EQ(core::to_text(which_run(runs, "a", "digits")->run.uid), wanted);
}

TEST(WhichRun, AJobStandsForItsOpenRunElseForItsNewest) {
  const Runs one = runs_of({run_of("digits", "old", true, 9), run_of("digits", "new", false, 1)});
  EXPECT_EQ(core::to_text(which_run(one, "digits", "")->run.uid), uid("digits", "new"));
  const Runs ended = runs_of({run_of("digits", "a", true, 1), run_of("digits", "b", true, 2)});
  EXPECT_EQ(core::to_text(which_run(ended, "digits", "")->run.uid), uid("digits", "b"));
}

TEST(WhichRun, InDoubtNoneIsMeant) {
  const Runs two = runs_of({run_of("digits", "a"), run_of("digits", "b")});
  const auto several = which_run(two, "digits", "");
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code, core::Code::failed_precondition);
  EXPECT_THAT(several.error().message, HasSubstr("stands for 2 runs"));
  EXPECT_THAT(several.error().message, HasSubstr(uid("digits", "a")));
  EXPECT_FALSE(which_run(two, uid("digits", "a").substr(0, 3), ""));  // too short for a beginning
}

TEST(WhichRun, WhatIsNotThereGetsTheNearestName) {
  const Runs runs = runs_of({run_of("digits", "a")});
  const auto none = which_run(runs, "digts", "");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, core::Code::not_found);
  EXPECT_THAT(none.error().message, HasSubstr("did you mean \"digits\"?"));
  EXPECT_THAT(which_run(runs, "b", "digits").error().message, HasSubstr("of the job \"digits\""));
  EXPECT_FALSE(which_run({}, "digits", ""));
  EXPECT_FALSE(which_run(runs, uid("digits", "a"), "other"));  // the wrong job
}

}  // namespace
}  // namespace tocsin::app
