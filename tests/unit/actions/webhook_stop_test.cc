// Stops by requests of an operator's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/platforms.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing_support;

constexpr const char* kFlux = R"({webhook: {
  url: 'https://flux.example', platforms: [flux], needs: [job_id],
  status: {path: '/jobs/{{fence.job_id}}'},
  stop: {path: '/jobs/{{fence.job_id}}/cancel', body: '{"id": "{{fence.job_id}}"}'},
  running: {status: ['200'], at: job.state, in: [RUN]},
  gone: {status: ['200'], at: job.state, in: [INACTIVE]},
  stale: {status: ['409']}, secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='}})";

struct WebhookBench : PlatformBench {
  WebhookBench() : PlatformBench(kFlux) {
    fence = core::ValueMap{{"platform", "flux"}, {"job_id", "f 1"}};
  }
};

TEST(WebhookStop, ActsOnlyOnWhatRuns) {
  WebhookBench bench;
  ASSERT_EQ(bench.errors, "");
  bench.answer(200, R"({"job":{"state":"RUN"}})");
  bench.answer(202, "");
  const auto answer = bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(answer.seen, PlatformSeen::running);
  EXPECT_TRUE(answer.asked) << answer.detail;
  EXPECT_THAT(bench.asked(), ElementsAre("GET https://flux.example/jobs/f%201",
                                         "POST https://flux.example/jobs/f%201/cancel"));
  EXPECT_EQ(bench.http.requests[1].body, R"({"id": "f 1"})");
  EXPECT_THAT(bench.http.requests[1].headers,
              ::testing::Contains(::testing::Pair("webhook-signature", HasSubstr("v1,"))));
}

TEST(WebhookStop, WhatIsNeitherGoneNorRunningIsNotTouched) {
  WebhookBench bench;
  bench.answer(200, R"({"job":{"state":"PENDING"}})");
  EXPECT_EQ(bench.carry_out(PlatformRung::graceful).seen, PlatformSeen::unreachable);
  bench.answer(409, "{}");
  EXPECT_EQ(bench.carry_out(PlatformRung::graceful).seen, PlatformSeen::stale);
  bench.answer(200, R"({"job":{"state":"INACTIVE"}})");
  EXPECT_EQ(bench.carry_out(PlatformRung::graceful).seen, PlatformSeen::ended);
  EXPECT_EQ(bench.http.requests.size(), 3u);
}

TEST(WebhookStop, TextOfAFenceStaysText) {
  WebhookBench bench;
  bench.fence = core::ValueMap{{"platform", "flux"}, {"job_id", "x\",\"all\":true,\"y\":\"/../"}};
  bench.answer(200, R"({"job":{"state":"RUN"}})");
  bench.carry_out(PlatformRung::graceful);
  EXPECT_EQ(bench.http.requests[1].body, R"({"id": "x\",\"all\":true,\"y\":\"/../"})");
  EXPECT_THAT(bench.http.requests[1].url, ::testing::Not(HasSubstr("/../")));
}

TEST(WebhookStop, NeedsWhatItsFenceIsMadeOf) {
  WebhookBench bench;
  EXPECT_TRUE(bench.platform->reaches(bench.fence));
  EXPECT_FALSE(bench.platform->reaches(core::ValueMap{{"platform", "flux"}}));
  EXPECT_FALSE(bench.platform->reaches(core::ValueMap{{"platform", "ray"}, {"job_id", "1"}}));
  EXPECT_THAT(PlatformBench("{webhook: {url: 'https://x.example', platforms: [flux]}}").errors,
              HasSubstr("status is missing"));
}

}  // namespace
}  // namespace tocsin::actions
