// Stops by Ray's jobs API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/platforms.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing_support;

std::string ray_job(const std::string& status, std::int64_t start_ms = 1'767'323'000'123) {
  return R"({"submission_id":"raysubmit_a1","status":")" + status + R"(","start_time":)" +
         std::to_string(start_ms) + "}";
}

struct RayBench : PlatformBench {
  RayBench() : PlatformBench("{ray: {url: 'https://ray.example/'}}") {
    fence = core::ValueMap{{"platform", "ray"},
                           {"submission_id", "raysubmit_a1"},
                           {"opened", std::int64_t{1'767'323'020}}};
  }
};

TEST(RayStop, AsksAndWaitsForAState) {
  RayBench bench;
  ASSERT_EQ(bench.errors, "");
  bench.answer(200, ray_job("RUNNING"));
  bench.answer(200, R"({"stopped":true})");
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::running) << "a 2xx proves nothing";
  EXPECT_TRUE(answer.asked);
  EXPECT_THAT(answer.detail, HasSubstr("it gets 3 s to save"));
  EXPECT_THAT(bench.asked(), ElementsAre("GET https://ray.example/api/jobs/raysubmit_a1",
                                         "POST https://ray.example/api/jobs/raysubmit_a1/stop"));
  bench.answer(200, ray_job("STOPPED"));
  EXPECT_EQ(bench.carry_out(PlatformRung::look).seen, PlatformSeen::ended);
}

// Ids can be chosen, and given again once the job was deleted.
TEST(RayStop, AJobThatBeganAfterTheRunIsAnother) {
  RayBench bench;
  bench.answer(200, ray_job("RUNNING", 1'767'323'100'000));
  EXPECT_EQ(bench.carry_out(PlatformRung::graceful).seen, PlatformSeen::stale);
  EXPECT_EQ(bench.http.requests.size(), 1u);
}

TEST(RayStop, GoneIsWhatRayItselfSays) {
  RayBench bench;
  bench.answer(404, "Job raysubmit_a1 does not exist");
  EXPECT_EQ(bench.carry_out(PlatformRung::look).seen, PlatformSeen::ended);
  bench.answer(404, "no such page");
  EXPECT_EQ(bench.carry_out(PlatformRung::look).seen, PlatformSeen::denied);
}

TEST(RayStop, ReachesNoIdThatIsAPath) {
  RayBench bench;
  EXPECT_TRUE(bench.platform->reaches(bench.fence));
  for (const char* id : {"..", "a/b", "", "a?b"}) {
    EXPECT_FALSE(bench.platform->reaches(
        core::ValueMap{{"platform", "ray"}, {"submission_id", id}, {"opened", std::int64_t{1}}}))
        << id;
  }
}

}  // namespace
}  // namespace tocsin::actions
