// What every HTTP integration gets from http_action.h, seen through one of a few lines.
#include "actions/integration/http_action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "actions/message/message.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using namespace testing_support;
using core::OutcomeClass;

// A chat: its own default URL, a credential in the body, failures answered with 200, and an id of
// the message to reply to.
struct Chat final : HttpIntegration {
  config::Secret token;

  Chat() { http_.url = config::Secret::from_value("https://chat.example/api"); }
  void keys(config::Reader& in) override { in.secret("token", token, "of the robot", true); }
  [[nodiscard]] Rendered render(const core::Notification& notification,
                                const Sender& sender) const override {
    const std::string text = notification.minimal ? "short" : text_body(notification, sender);
    return {"application/json", core::to_json(core::ValueMap{{"text", text}}), {{"room", "ops"}}};
  }
  core::Status complete(HttpRequest& request, const HttpAttempt& attempt) const override {
    const auto opened = attempt.opened.reveal(token, "token");
    if (!opened) return opened.error();
    request.url += "/" + attempt.rendered.field("room");
    request.body.insert(1, "\"token\":\"" + *opened + "\",");
    return core::ok();
  }
  [[nodiscard]] core::AttemptOutcome classify(const HttpResult& result,
                                              core::WallTime now) const override {
    core::AttemptOutcome out = HttpIntegration::classify(result, now);
    if (out.outcome == OutcomeClass::delivered && result.response.body.starts_with("error")) {
      out.outcome = OutcomeClass::configuration;
      out.detail = result.response.body;
    }
    return out;
  }
  [[nodiscard]] Handles handles(const HttpResponse& response,
                                const core::Notification& /*notification*/) const override {
    return {{"thread", response.body}};
  }
  [[nodiscard]] bool lost(const HttpResponse& response) const override {
    return response.body == "no such thread";
  }
};

struct ChatBench : Workbench {
  std::unique_ptr<core::Action> chat(const std::string& yaml, std::uint64_t max_payload = 262144) {
    config::Diagnostics diagnostics;
    const auto document = config::Document::parse(
        yaml, "test.yaml", [](const std::string&) { return std::nullopt; }, diagnostics);
    std::shared_ptr<const ActionConfig> read;
    document->read(diagnostics, [&](config::Reader& in) { read = read_http<Chat>(in); });
    errors.clear();
    for (const auto& item : diagnostics.items()) errors += to_text(item) + "\n";
    CommonConfig common;
    common.max_payload.count = max_payload;
    return std::move(*read->build(environment, {"oncall/chat", "oncall", "chat"}, common));
  }
  std::string errors;
};

TEST(HttpAction, SendsTheStoredBodyToTheDefaultUrlAndCompletesItForOneAttempt) {
  ChatBench bench;
  const auto chat = bench.chat("{token: secret-token}");
  EXPECT_EQ(bench.errors, "");
  auto notification = sample_notification();
  notification.rendered = *chat->render(notification);
  EXPECT_THAT(notification.rendered, Not(HasSubstr("secret-token")));
  bench.http.answers.push_back({HttpFailure::none, "", {200, {}, "1234.5"}});
  const core::AttemptOutcome out = chat->execute(notification, 1, 7s);
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_THAT(out.handles, ElementsAre(Pair("thread", "1234.5")));
  const HttpRequest& request = bench.http.requests.at(0);
  EXPECT_EQ(request.url, "https://chat.example/api/ops");
  EXPECT_EQ(request.timeout, 7s);
  EXPECT_EQ(nlohmann::json::parse(request.body)["token"], "secret-token");
}

TEST(HttpAction, WhatTheFarSideHasLostIsNotNamedASecondTime) {
  ChatBench bench;
  const auto chat = bench.chat("{token: secret-token}");
  auto notification = sample_notification();
  bench.http.answers.push_back({HttpFailure::none, "", {404, {}, "no such thread"}});
  EXPECT_EQ(deliver(*chat, notification).outcome, OutcomeClass::configuration);
  EXPECT_EQ(bench.http.requests.size(), 1u) << "it named none";
  notification.handles = {{"thread", "1"}};
  bench.http.answers.push_back({HttpFailure::none, "", {404, {}, "no such thread"}});
  EXPECT_EQ(deliver(*chat, notification).outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.http.requests.size(), 3u);
}

TEST(HttpAction, AnIntegrationSaysWhatItsAnswersMeanAndNoCredentialComesBack) {
  ChatBench bench;
  const auto chat = bench.chat("{token: secret-token}");
  bench.http.answers.push_back({HttpFailure::none, "", {200, {}, "error: secret-token"}});
  const core::AttemptOutcome refused = deliver(*chat, sample_notification());
  EXPECT_EQ(refused.outcome, OutcomeClass::configuration);
  EXPECT_EQ(refused.detail, "error: <redacted>");
  EXPECT_TRUE(refused.handles.empty());
  bench.http.answers.push_back({HttpFailure::none, "", {200, {}, "to secret-token"}});
  EXPECT_THAT(deliver(*chat, sample_notification()).handles,
              ElementsAre(Pair("thread", "to <redacted>")));
  bench.http.answers.push_back({HttpFailure::none, "", {429, {{"retry-after", "30"}}, ""}});
  const core::AttemptOutcome busy = deliver(*chat, sample_notification());
  EXPECT_EQ(busy.outcome, OutcomeClass::throttled);
  EXPECT_EQ(busy.retry_after, 30s);
}

TEST(HttpAction, AMessageThatIsTooLargeIsSentInItsShortForm) {
  ChatBench bench;
  deliver(*bench.chat("{token: secret-token}", 100), sample_notification());
  EXPECT_THAT(bench.http.requests.at(0).body, HasSubstr("\"text\":\"short\""));
}

TEST(HttpAction, EveryIntegrationHasTheCommonKeys) {
  ChatBench bench;
  deliver(*bench.chat("{token: secret-token, url: 'http://10.0.0.7/x', bearer_token: opensesame, "
                      "allow_private: [10.0.0.0/8], headers: {X-Team: nlp}}"),
          sample_notification());
  EXPECT_EQ(bench.errors, "");
  const HttpRequest& request = bench.http.requests.at(0);
  EXPECT_EQ(request.url, "http://10.0.0.7/x/ops");
  EXPECT_THAT(request.headers, ::testing::IsSupersetOf(
                                   {Pair("X-Team", "nlp"), Pair("content-type", "application/json"),
                                    Pair("authorization", "Bearer opensesame")}));
  (void)bench.chat("{url: 'ftp://10.0.0.7/', tls: {cert_file: a.pem}}");
  EXPECT_THAT(bench.errors, HasSubstr("token"));
  EXPECT_THAT(bench.errors, HasSubstr("url"));
  EXPECT_THAT(bench.errors, HasSubstr("cert_file and key_file belong together"));
  (void)bench.chat("{token: secret-token, allow_private: [all]}");
  EXPECT_THAT(bench.errors, HasSubstr("allow_private"));
}

TEST(HttpAction, WithoutItsCredentialNothingIsSent) {
  ChatBench bench;
  const core::AttemptOutcome out =
      deliver(*bench.chat("{token_file: /nowhere/token}"), sample_notification());
  EXPECT_EQ(out.outcome, OutcomeClass::configuration);
  EXPECT_THAT(out.detail, HasSubstr("token"));
  EXPECT_TRUE(bench.http.requests.empty());
}

}  // namespace
}  // namespace tocsin::actions
