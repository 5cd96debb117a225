// Elements of tensors, from the training thread to the queue: whose, how much of them, and what is said of
// those that do not go.
#include <gmock/gmock.h>

#include <cstring>
#include <numeric>

#include "tests/unit/collectors/hook/raw_fixture.h"

namespace tocsin::hook {
namespace {

using core::LifecycleEvent;
using std::chrono::milliseconds;

std::int64_t skipped(const RawQueue& queue, const char* reason) {
  const core::Value counters(queue.counters());
  const core::Value* all = core::find(counters, "skipped_total");
  const core::Value* one = core::find(*all, reason);
  const auto* count = core::as<std::int64_t>(one);
  return count == nullptr ? -1 : *count;
}

TEST_F(RawTest, OnlyCollectionsThatSayRawAndOnlyOnTheirGrid) {
  Session session = open_raw(R"({every: 2, collections: {gradients: {raw: true}, weights: }})");
  const std::uint64_t gradient = session.name("gradient/w", tensor_info());
  const std::uint64_t weight = session.name("w.weight", tensor_info());
  const std::vector<float> values{1, 2, 3};
  for (int step = 0; step < 4; ++step) {
    session.tensors(std::array{lend(gradient, values), lend(weight, values)});
    session.step_end(false, 1);
  }
  const auto first = raw_queue_->take(1U << 20);
  const auto second = raw_queue_->take(1U << 20);
  ASSERT_EQ(first.size(), 1U);
  ASSERT_EQ(second.size(), 1U)
      << "tensors of one step are taken together, those of another are not";
  EXPECT_EQ(first[0].text, "gradient/w");
  EXPECT_EQ(first[0].header.step, 0);
  EXPECT_EQ(second[0].header.step, 2);
  EXPECT_TRUE(raw_queue_->take(1U << 20).empty());
  EXPECT_EQ(first[0].data.size(), 12U);
  EXPECT_EQ(std::memcmp(first[0].data.data(), values.data(), 12), 0);
}

TEST_F(RawTest, ACallMayAskForElementsAndDueSaysWhoDoes) {
  Session session = open_raw(R"({every: 1, collections: {gradients: {raw: true}, weights: }})");
  const std::array<std::uint64_t, 3> ids{session.name("gradient/w", tensor_info()),
                                         session.name("w.weight", tensor_info()), 99};
  std::array<std::uint8_t, 3> due{};
  session.due_of(ids, 0, due);
  EXPECT_THAT(due, ::testing::ElementsAre(3, 1, 0));
  LentTensor asked = lend(ids[1], {5, 6});
  const std::vector<float> values{5, 6};
  asked.data = values.data();
  asked.raw = true;
  session.tensors(std::array{asked});
  const auto taken = raw_queue_->take(1U << 20);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].text, "w.weight");
}

TEST_F(RawTest, BeyondTheStepsLimitIsSkippedCountedAndSaidOnce) {
  Session session =
      open_raw(R"({every: 1, collections: {gradients: {raw: true}}, raw: {max_bytes: 100}})");
  const std::vector<float> values(10);  // 40 bytes: two of them go, the third does not
  std::vector<std::uint64_t> ids;
  for (const char* name : {"gradient/a", "gradient/b", "gradient/c"}) {
    ids.push_back(session.name(name, tensor_info()));
  }
  for (int step = 0; step < 3; ++step) {
    session.tensors(std::array{lend(ids[0], values), lend(ids[1], values), lend(ids[2], values)});
    session.step_end(false, 1);
  }
  session.flush();
  EXPECT_EQ(skipped(*raw_queue_, "step_limit"), 3);
  const auto gaps = Drained(*queue_).lifecycles(LifecycleEvent::gap);
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].lane, "raw");
  EXPECT_EQ(gaps[0].reason, "step_limit");
  EXPECT_EQ(gaps[0].first_step, 0);
  EXPECT_EQ(raw_queue_->loss(), "3 raw tensors (120 bytes) did not go to topic: 3 step_limit");
}

TEST_F(RawTest, AFullQueueTakesNoMoreAndTrainingGoesOn) {
  Session session =
      open_raw(R"({every: 1, collections: {gradients: {raw: true}}, raw: {queue: 1MiB}})");
  const std::uint64_t id = session.name("gradient/a", tensor_info());
  const std::vector<float> values(100'000);
  for (int step = 0; step < 5; ++step) {
    session.tensors(std::array{lend(id, values)});
    session.step_end(false, 1);
  }
  EXPECT_EQ(skipped(*raw_queue_, "queue_full"), 3);
  EXPECT_FALSE(raw_queue_->wait_until_empty(milliseconds(0)));
  raw_queue_->give_up();
  EXPECT_EQ(skipped(*raw_queue_, "undelivered"), 2);
  EXPECT_TRUE(raw_queue_->wait_until_empty(milliseconds(0)));
}

TEST_F(RawTest, WhatCannotBeReadIsCounted) {
  Session session = open_raw();
  NameInfo info = tensor_info();
  info.dtype = core::Dtype::text;
  const std::uint64_t text = session.name("gradient/text", info);
  LentTensor words = lend(text, {1, 2});
  const std::vector<float> values{1, 2};
  words.data = values.data();
  words.dtype = core::Dtype::text;
  session.tensors(std::array{words});
  EXPECT_EQ(skipped(*raw_queue_, "unreadable"), 1);
}

TEST_F(RawTest, ACommandSwitchesElementsOnAndOff) {
  CapturePlan plan = make_plan(R"({every: 10, collections: {gradients: }})");
  EXPECT_EQ(plan.raw_of(~CollectionMask{0}), 0U);
  CollectionConfig wanted;
  wanted.name = "gradients";
  wanted.raw = true;
  bool changed = false;
  EXPECT_TRUE(plan.extend(wanted, changed).empty());
  EXPECT_TRUE(changed);
  EXPECT_EQ(plan.raw_of(~CollectionMask{0}), plan.bit("gradients"));
  plan.restore();
  EXPECT_EQ(plan.raw_of(~CollectionMask{0}), 0U);
}

TEST_F(RawTest, WhoKeepsElementsToHimselfRefusesThem) {
  CapturePlan plan = make_plan(R"({collections: {gradients: }, raw: {on_request: false}})");
  CollectionConfig wanted;
  wanted.name = "gradients";
  wanted.raw = true;
  bool changed = false;
  EXPECT_THAT(plan.extend(wanted, changed), ::testing::ElementsAre("gradients/raw"));
  EXPECT_FALSE(changed);
  EXPECT_EQ(plan.raw_of(~CollectionMask{0}), 0U);
}

TEST_F(RawTest, DestinationsThatAreNoneAreRefused) {
  for (const char* to :
       {"s3://", "s3:///key", "s3://bucket/a b", "gs://bucket", "http://host/x", "''"}) {
    EXPECT_FALSE(parse_capture(std::string("{raw: {to: ") + to + "}}")) << to;
  }
  for (const char* to : {"topic", "./raw", "/data/raw", "s3://bucket", "s3://bucket/a/b-c_d.e~f"}) {
    EXPECT_TRUE(parse_capture(std::string("{raw: {to: ") + to + "}}")) << to;
  }
  EXPECT_FALSE(parse_capture("{raw: {chunk: 1MiB}}"));
  EXPECT_FALSE(parse_capture("{raw: {endpoint: 'ftp://host'}}"));
}

}  // namespace
}  // namespace tocsin::hook
