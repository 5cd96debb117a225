#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using namespace testing_support;
using core::NotificationKind;
using nlohmann::json;

constexpr char kDiscord[] = "{url: 'https://discord.com/api/webhooks/1/t?thread_id=5'}";
constexpr char kDiscordHook[] = "https://discord.com/api/webhooks/1/t";

struct DiscordBench : Workbench {
  std::unique_ptr<core::Action> action = make("discord", kDiscord);
  core::AttemptOutcome told(core::Notification notification, int status, const std::string& body) {
    http.answers.push_back({HttpFailure::none, "", {status, {}, body}});
    return deliver(*action, std::move(notification));
  }
  [[nodiscard]] std::string last() const {
    return http.requests.back().method + " " + http.requests.back().url;
  }
};

TEST(Discord, MentionsNobody) {
  DiscordBench bench;
  bench.told(sample_notification(), 200, R"({"id":"1"})");
  const json body = json::parse(bench.http.requests.at(0).body);
  EXPECT_EQ(body["allowed_mentions"], (json{{"parse", json::array()}}));
}

TEST(Discord, AnEndChangesTheMessageOfItsIncident) {
  DiscordBench bench;
  const auto opened = bench.told(sample_notification(), 200, R"({"id":"42"})");
  EXPECT_EQ(bench.last(), "POST " + std::string(kDiscordHook) + "?thread_id=5&wait=true");
  EXPECT_THAT(opened.handles, ElementsAre(Pair("message_id", "42")));
  auto close = sample_notification("two", NotificationKind::close);
  close.handles = opened.handles;
  bench.told(close, 200, R"({"id":"42"})");
  EXPECT_EQ(bench.last(), "PATCH " + std::string(kDiscordHook) + "/messages/42?thread_id=5");
}

TEST(Discord, NewsAreANewMessageAsAnOldOneThatChangesReachesNobody) {
  DiscordBench bench;
  auto update = sample_notification("two", NotificationKind::update);
  update.reason = "new_issues";
  update.handles = {{"message_id", "42"}};
  bench.told(update, 200, R"({"id":"43"})");
  EXPECT_EQ(bench.last(), "POST " + std::string(kDiscordHook) + "?thread_id=5&wait=true");
}

TEST(Discord, OfAMessageThatWasDeletedTheEndIsPosted) {
  DiscordBench bench;
  auto close = sample_notification("two", NotificationKind::close);
  close.handles = {{"message_id", "42"}};
  bench.http.answers.push_back({HttpFailure::none, "", {404, {}, R"({"code":10008})"}});
  EXPECT_EQ(bench.told(close, 200, R"({"id":"44"})").outcome, core::OutcomeClass::delivered);
  EXPECT_EQ(bench.http.requests.size(), 2u);
  EXPECT_EQ(bench.last(), "POST " + std::string(kDiscordHook) + "?thread_id=5&wait=true");
}

TEST(Discord, ADigestIsNoIncidentsMessageAndAnIdThatIsNoNumberIsNone) {
  DiscordBench bench;
  auto digest = sample_notification("two", NotificationKind::update);
  digest.reason = "digest";
  EXPECT_THAT(bench.told(digest, 200, R"({"id":"42"})").handles, IsEmpty());
  EXPECT_THAT(bench.told(sample_notification(), 200, R"({"id":"../x"})").handles, IsEmpty());
}

}  // namespace
}  // namespace tocsin::actions
