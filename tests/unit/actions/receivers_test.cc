#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::load;

constexpr char kHook[] = "url: https://example.com/hook";

TEST(Receivers, NamesEachIntegrationAfterItsReceiverAndType) {
  const auto loaded = load(
      std::string("receivers:\n  oncall:\n    email: {to: a@b.c}\n    webhook: {") + kHook + "}\n");
  EXPECT_EQ(loaded.errors, "");
  ASSERT_EQ(loaded.receivers.integrations.size(), 2u);
  EXPECT_EQ(loaded.receivers.integrations[0].common.id, "oncall/email");
  EXPECT_EQ(loaded.receivers.integrations[1].common.id, "oncall/webhook");
  EXPECT_THAT(loaded.receivers.names, ElementsAre("oncall"));
}

TEST(Receivers, TakesAListWhenATypeRepeats) {
  const auto loaded =
      load(std::string("receivers:\n  oncall:\n    - webhook: {") + kHook + "}\n    - webhook: {" +
           kHook + "}\n    - webhook: {" + kHook + ", id: third}\n");
  EXPECT_EQ(loaded.errors, "");
  ASSERT_EQ(loaded.receivers.integrations.size(), 3u);
  EXPECT_EQ(loaded.receivers.integrations[1].common.id, "oncall/webhook/2");
  EXPECT_EQ(loaded.receivers.integrations[2].common.id, "third");
}

TEST(Receivers, SuggestsTheNearestActionForAnUnknownOne) {
  const auto loaded = load("receivers:\n  oncall:\n    webhok: {}\n");
  EXPECT_THAT(loaded.errors, HasSubstr("test.yaml:3:5"));
  EXPECT_THAT(loaded.errors, HasSubstr("did you mean \"webhook\"?"));
}

TEST(Receivers, RefusesTwoIntegrationsWithOneId) {
  const auto loaded = load(std::string("receivers:\n  a: {webhook: {id: x, ") + kHook +
                           "}}\n  b: {webhook: {id: x, " + kHook + "}}\n");
  EXPECT_THAT(loaded.errors, HasSubstr("\"x\" is used twice"));
}

TEST(Receivers, FindsEveryProblemOfAFileInOneGo) {
  const auto loaded = load(
      "receivers:\n"
      "  a: {email: {to: nobody, port: 70000}}\n"
      "  b: {mqtt: {topic: a//b, qos: 3}}\n"
      "  c: {stop_training: {mode: explode, allow: [team]}}\n"
      "  d: {webhook: {url: 'ftp://example.com', allow_private: [everything]}}\n"
      "  e: {webhook: {url: 'http://127.0.0.1:1/'}}\n"
      "  f: {webhook: {url: 'https://user:pw@example.com/'}}\n");
  for (const char* part : {"\"nobody\" is no mail address", "70000", "empty levels", "qos",
                           "mode must be", "expected label=value", "\"everything\" is no network",
                           "name its network in allow_private", "may not hold user or password"}) {
    EXPECT_THAT(loaded.errors, HasSubstr(part));
  }
}

TEST(Receivers, ReadsTheCommonSettings) {
  const auto loaded =
      load(std::string("receivers: {a: {webhook: {") + kHook +
           ", timeout: 3s, retry: {initial: 2s, max_attempts: 7}, rate_limit: {rate: 2, "
           "burst: 5}, breaker: {failures: 9}, on_unknown: drop, shadow: true}}}\n");
  EXPECT_EQ(loaded.errors, "");
  const CommonConfig& common = loaded.receivers.integrations.at(0).common;
  EXPECT_EQ(common.timeout, std::chrono::seconds(3));
  EXPECT_EQ(common.retry.initial, std::chrono::seconds(2));
  EXPECT_EQ(common.retry.max_attempts, 7u);
  EXPECT_EQ(common.rate_limit.burst, 5u);
  EXPECT_EQ(common.breaker.failures, 9u);
  EXPECT_FALSE(common.retry_unknown);
  EXPECT_TRUE(common.shadow);
}

TEST(Receivers, EveryActionHasANameOfItsOwnAndASentence) {
  std::set<std::string_view> names;
  for (const auto& descriptor : builtin_actions()) {
    EXPECT_TRUE(names.insert(descriptor.name).second) << descriptor.name;
    EXPECT_TRUE(descriptor.summary.ends_with('.')) << descriptor.name;
  }
  EXPECT_TRUE(names.contains("webhook"));
}

TEST(Receivers, AStopIsNotToldOfTheEndAndDoesNotComeLate) {
  const auto loaded = load("receivers: {stop: {stop_training: {}}}\n");
  EXPECT_EQ(loaded.errors, "");
  EXPECT_FALSE(loaded.receivers.integrations.at(0).common.send_resolved);
  EXPECT_EQ(loaded.receivers.integrations.at(0).common.max_age, std::chrono::minutes(10));
}

}  // namespace
}  // namespace tocsin::actions
