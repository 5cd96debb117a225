#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using namespace testing_support;
using core::OutcomeClass;
using nlohmann::json;

struct TelegramBench : Workbench {
  std::unique_ptr<core::Action> action = make("telegram", "{bot_token: '1:tok', chat_id: '-100'}");
  core::AttemptOutcome told(const core::Notification& notification, int status,
                            const std::string& body) {
    http.answers.push_back({HttpFailure::none, "", {status, {}, body}});
    return deliver(*action, notification);
  }
};

core::Notification closing() {
  auto out = sample_notification("two", core::NotificationKind::close);
  out.handles = {{"message_id", "17"}};
  return out;
}

TEST(Telegram, AnEndChangesTheMessageOfItsIncident) {
  TelegramBench bench;
  const auto sent =
      bench.told(sample_notification(), 200, R"({"ok":true,"result":{"message_id":17}})");
  EXPECT_THAT(sent.handles, ElementsAre(Pair("message_id", "17")));
  EXPECT_EQ(bench.http.requests.back().url, "https://api.telegram.org/bot1:tok/sendMessage");
  bench.told(closing(), 200, R"({"ok":true,"result":{"message_id":17}})");
  EXPECT_EQ(bench.http.requests.back().url, "https://api.telegram.org/bot1:tok/editMessageText");
  EXPECT_EQ(json::parse(bench.http.requests.back().body)["message_id"], 17);
}

TEST(Telegram, AnswersMeanWhatTheirDescriptionSays) {
  TelegramBench bench;
  const auto means = [&](int status, const std::string& why) {
    return bench.told(closing(), status, R"({"ok":false,"description":")" + why + "\"}").outcome;
  };
  EXPECT_EQ(means(400, "Bad Request: message is not modified"), OutcomeClass::delivered);
  EXPECT_EQ(means(400, "Bad Request: chat not found"), OutcomeClass::configuration);
  EXPECT_EQ(means(403, "Forbidden: bot was kicked"), OutcomeClass::configuration);
  EXPECT_EQ(means(400, "Bad Request: can't parse entities"), OutcomeClass::bad_payload);
  EXPECT_EQ(bench.told(closing(), 200, "<html>").outcome, OutcomeClass::configuration);
  const auto wait = bench.told(closing(), 429, R"({"ok":false,"parameters":{"retry_after":12}})");
  EXPECT_EQ(wait.outcome, OutcomeClass::throttled);
  EXPECT_EQ(wait.retry_after, core::Duration(12s));
}

TEST(Telegram, OfAMessageThatWasDeletedTheEndIsSent) {
  TelegramBench bench;
  bench.http.answers.push_back(
      {HttpFailure::none,
       "",
       {400, {}, R"({"ok":false,"description":"Bad Request: message to edit not found"})"}});
  EXPECT_EQ(bench.told(closing(), 200, R"({"ok":true})").outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.http.requests.back().url, "https://api.telegram.org/bot1:tok/sendMessage");
}

}  // namespace
}  // namespace tocsin::actions
