// Stops by SageMaker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/platforms.h"

namespace tocsin::actions {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using namespace testing_support;

constexpr const char* kArn = "arn:aws:sagemaker:eu-central-1:123456789012:training-job/bert-1";

std::string described(const std::string& status, const std::string& arn = kArn,
                      const std::string& created = "1767323000.5") {
  return R"({"TrainingJobArn":")" + arn + R"(","TrainingJobStatus":")" + status +
         R"(","CreationTime":)" + created + "}";
}

struct SageMakerBench : PlatformBench {
  SageMakerBench()
      : PlatformBench(
            "{sagemaker: {aws: {region: eu-central-1, access_key_id: AKIDEXAMPLE, "
            "secret_access_key: canary-secret}}}") {
    fence = core::ValueMap{{"platform", "sagemaker"},
                           {"name", "Bert-1"},
                           {"arn", kArn},
                           {"opened", std::int64_t{1'767'323'100}}};
  }
};

TEST(SageMakerStop, StopsTheJobOfThatArn) {
  SageMakerBench bench;
  ASSERT_EQ(bench.errors, "");
  bench.answer(200, described("InProgress"));
  bench.answer(200, "");
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::running) << answer.detail;
  EXPECT_TRUE(answer.asked);
  ASSERT_EQ(bench.http.requests.size(), 2u);
  const HttpRequest& stop = bench.http.requests[1];
  EXPECT_EQ(stop.url, "https://api.sagemaker.eu-central-1.amazonaws.com/");
  EXPECT_EQ(stop.body, R"({"TrainingJobName":"Bert-1"})");
  EXPECT_THAT(stop.headers, Contains(std::pair<std::string, std::string>(
                                "x-amz-target", "SageMaker.StopTrainingJob")));
  ASSERT_TRUE(stop.aws);
  EXPECT_EQ(stop.aws->service, "sagemaker");
  EXPECT_EQ(stop.aws->region, "eu-central-1");
}

TEST(SageMakerStop, WhatIsStoppingIsNotAskedAgain) {
  SageMakerBench bench;
  bench.answer(200, described("Stopping"));
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_TRUE(answer.asked);
  EXPECT_EQ(bench.http.requests.size(), 1u);
  bench.answer(200, described("Stopped"));
  EXPECT_EQ(bench.carry_out(PlatformRung::look).seen, PlatformSeen::ended);
}

TEST(SageMakerStop, AnotherJobIsLeftAlone) {
  for (const std::string& other :
       {described("InProgress", "arn:aws:sagemaker:eu-central-1:999999999999:training-job/bert-1"),
        described("InProgress", kArn, "1767323200")}) {
    SageMakerBench bench;
    bench.answer(200, other);
    EXPECT_EQ(bench.carry_out(PlatformRung::graceful).seen, PlatformSeen::stale) << other;
    EXPECT_EQ(bench.http.requests.size(), 1u);
  }
}

TEST(SageMakerStop, NotFoundProvesNothing) {
  SageMakerBench bench;
  bench.answer(400, R"({"__type":"ResourceNotFound","message":"Requested resource not found."})");
  const auto answer = bench.carry_out(PlatformRung::look);
  EXPECT_EQ(answer.seen, PlatformSeen::denied);
  EXPECT_THAT(answer.detail, HasSubstr("Requested resource not found"));
  bench.answer(400, R"({"__type":"ThrottlingException","message":"Rate exceeded"})");
  EXPECT_EQ(bench.carry_out(PlatformRung::look).seen, PlatformSeen::unreachable);
}

TEST(SageMakerStop, OneThatEndedMeanwhileHasEnded) {
  SageMakerBench bench;
  bench.answer(200, described("InProgress"));
  bench.answer(
      400,
      R"({"__type":"ValidationException","message":"The request was rejected because the training job is in status Completed."})");
  bench.answer(200, described("Completed"));
  EXPECT_EQ(bench.carry_out(PlatformRung::graceful).seen, PlatformSeen::ended);
}

TEST(SageMakerStop, ReachesOnlyJobsOfItsRegion) {
  SageMakerBench bench;
  EXPECT_TRUE(bench.platform->reaches(bench.fence));
  const auto reaches = [&](const char* name, const char* arn) {
    return bench.platform->reaches(core::ValueMap{{"platform", "sagemaker"},
                                                  {"name", name},
                                                  {"arn", arn},
                                                  {"opened", std::int64_t{1'767'323'100}}});
  };
  EXPECT_FALSE(reaches("bert-1", "arn:aws:sagemaker:us-east-1:1:training-job/bert-1"));
  EXPECT_FALSE(reaches("bert", kArn)) << "a prefix of the name is another job";
  EXPECT_FALSE(reaches("bert-1", "arn:aws:x:job/a"));
}

}  // namespace
}  // namespace tocsin::actions
