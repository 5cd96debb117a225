// Stops by slurmrestd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/platforms.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing_support;

const std::string kSlurmJob = "https://slurm.example/slurm/v0.0.41/job/77";

std::string slurm_job(const std::string& state, int restarts = 1,
                      std::int64_t start = 1'767'323'000, const std::string& cluster = "c1") {
  return R"({"jobs":[{"job_id":77,"job_state":[)" + state + R"(],"cluster":")" + cluster +
         R"(","restart_cnt":)" + std::to_string(restarts) +
         R"(,"start_time":{"set":true,"infinite":false,"number":)" + std::to_string(start) +
         R"(}}],"errors":[]})";
}

struct SlurmBench : PlatformBench {
  explicit SlurmBench(const std::string& more = "")
      : PlatformBench("{slurm: {url: 'https://slurm.example', token: canary-token, user: tocsin" +
                      more + "}}") {
    fence = core::ValueMap{{"platform", "slurm"},
                           {"job_id", "77"},
                           {"cluster", "c1"},
                           {"restart_cnt", 1},
                           {"start_time", std::int64_t{1'767'323'000}}};
  }
};

TEST(SlurmStop, CancelsTheJobAndReadsItAgain) {
  SlurmBench bench;
  ASSERT_EQ(bench.errors, "");
  bench.answer(200, slurm_job(R"("RUNNING")"));
  bench.answer(200, R"({"errors":[]})");
  bench.answer(200, slurm_job(R"("CANCELLED","COMPLETING")"));
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::running) << answer.detail;
  EXPECT_TRUE(answer.asked);
  EXPECT_THAT(bench.asked(),
              ElementsAre("GET " + kSlurmJob, "DELETE " + kSlurmJob, "GET " + kSlurmJob));
  EXPECT_THAT(bench.http.requests[1].headers,
              ::testing::IsSupersetOf(
                  {std::pair<std::string, std::string>("x-slurm-user-name", "tocsin"),
                   std::pair<std::string, std::string>("x-slurm-user-token", "canary-token")}));
}

TEST(SlurmStop, AJobThatWasCancelledIsNotCancelledAgain) {
  SlurmBench bench;
  bench.answer(200, slurm_job(R"("CANCELLED","COMPLETING")"));
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::running);
  EXPECT_TRUE(answer.asked);
  EXPECT_EQ(bench.http.requests.size(), 1u);
}

TEST(SlurmStop, AnotherStartOfTheSameIdIsLeftAlone) {
  for (const std::string& other :
       {slurm_job(R"("RUNNING")", 2), slurm_job(R"("RUNNING")", 1, 1'767'399'000),
        slurm_job(R"("RUNNING")", 1, 1'767'323'000, "c2")}) {
    SlurmBench bench;
    bench.answer(200, other);
    EXPECT_EQ(bench.carry_out(PlatformRung::graceful).seen, PlatformSeen::stale) << other;
    EXPECT_EQ(bench.http.requests.size(), 1u);
  }
}

TEST(SlurmStop, WithoutAStartTimeTheOpeningTells) {
  SlurmBench bench;
  bench.fence = core::ValueMap{{"platform", "slurm"},
                               {"job_id", "77"},
                               {"restart_cnt", 1},
                               {"opened", std::int64_t{1'767'323'030}}};
  ASSERT_TRUE(bench.platform->reaches(bench.fence));
  bench.answer(200, slurm_job(R"("RUNNING")"));
  EXPECT_EQ(bench.carry_out(PlatformRung::look).seen, PlatformSeen::running);
  bench.answer(200, slurm_job(R"("RUNNING")", 1, 1'767'323'100));
  EXPECT_EQ(bench.carry_out(PlatformRung::look).seen, PlatformSeen::stale);
}

// It was requeued between our reading and our cancel: Slurm has no precondition, so it is said.
TEST(SlurmStop, WhatHappenedInBetweenIsTold) {
  SlurmBench bench;
  bench.answer(200, slurm_job(R"("RUNNING")"));
  bench.answer(200, R"({"errors":[]})");
  bench.answer(200, slurm_job(R"("PENDING")", 2));
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::stale);
  EXPECT_THAT(answer.detail, HasSubstr("it was replaced meanwhile"));
}

TEST(SlurmStop, ErrorsInA200Count) {
  SlurmBench denied;
  denied.answer(200, slurm_job(R"("RUNNING")"));
  denied.answer(200, R"({"errors":[{"error_number":2006,"description":"Access denied"}]})");
  const auto refused = denied.carry_out(PlatformRung::graceful);
  EXPECT_EQ(refused.seen, PlatformSeen::denied);
  EXPECT_FALSE(refused.asked);
  EXPECT_THAT(refused.detail, HasSubstr("Access denied"));

  SlurmBench done;
  done.answer(200, slurm_job(R"("RUNNING")"));
  done.answer(
      200,
      R"({"errors":[{"error_number":2021,"description":"Job/step already completing or completed"}]})");
  done.answer(200, slurm_job(R"("COMPLETED")"));
  EXPECT_EQ(done.carry_out(PlatformRung::graceful).seen, PlatformSeen::ended);

  SlurmBench purged;
  purged.answer(500,
                R"({"errors":[{"error_number":2017,"description":"Invalid job id specified"}]})");
  EXPECT_EQ(purged.carry_out(PlatformRung::look).seen, PlatformSeen::ended);
}

TEST(SlurmStop, OnlyATerminalStateIsAnEnd) {
  const auto seen = [](const std::string& state) {
    SlurmBench bench;
    bench.answer(200, slurm_job(state));
    return bench.carry_out(PlatformRung::look).seen;
  };
  EXPECT_EQ(seen(R"("CANCELLED")"), PlatformSeen::ended);
  EXPECT_EQ(seen(R"("FAILED")"), PlatformSeen::ended);
  EXPECT_EQ(seen(R"("COMPLETED","COMPLETING")"), PlatformSeen::running);
  EXPECT_EQ(seen(R"("SUSPENDED")"), PlatformSeen::running);
}

TEST(SlurmStop, ASignalComesFirstAndTheCancelIsTheHarderRung) {
  SlurmBench bench(", signal: USR1");
  bench.answer(200, slurm_job(R"("RUNNING")"));
  bench.answer(200, R"({"errors":[]})");
  bench.answer(200, slurm_job(R"("RUNNING")"));
  EXPECT_TRUE(bench.carry_out(PlatformRung::graceful).asked);
  EXPECT_EQ(bench.asked().at(1), "DELETE " + kSlurmJob + "?signal=USR1&flags=FULL_JOB");
  bench.answer(200, slurm_job(R"("RUNNING")"));
  bench.answer(200, R"({"errors":[]})");
  bench.answer(200, slurm_job(R"("CANCELLED")"));
  EXPECT_EQ(bench.carry_out(PlatformRung::force).seen, PlatformSeen::ended);
  EXPECT_EQ(bench.asked().at(4), "DELETE " + kSlurmJob);
}

TEST(SlurmStop, JobsOfOtherClustersAreNotItsBusiness) {
  SlurmBench bench(", cluster: c2");
  EXPECT_FALSE(bench.platform->reaches(bench.fence));
  EXPECT_NE(PlatformBench("{slurm: {url: 'https://s.example'}}").errors, "");  // no token
  EXPECT_THAT(
      PlatformBench("{slurm: {url: 'https://s.example', token: t, version: 'v0/../x'}}").errors,
      HasSubstr("expected a text such as v0.0.41"));
}

}  // namespace
}  // namespace tocsin::actions
