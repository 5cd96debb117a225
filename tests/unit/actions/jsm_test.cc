#include "tests/unit/actions/far_side_talk.h"

namespace tocsin::actions {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using namespace testing_support;
using core::NotificationKind;
using core::OutcomeClass;

constexpr char kAccepted[] = R"({"result":"Request will be processed","requestId":"req-1"})";

std::string jsm_result(bool done, const std::string& status) {
  return R"({"data":{"isSuccess":)" + std::string(done ? "true" : "false") + R"(,"status":")" +
         status + R"(","alertId":"alert-9"}})";
}

struct JsmBench : TalkBench {
  explicit JsmBench(const std::string& more = "")
      : TalkBench("jsm", "{api_key: canary-genie-key" + more + "}") {}
  /// The request is accepted, and then has this result.
  core::AttemptOutcome through(const core::Notification& notification, bool done,
                               const std::string& status) {
    answer(202, kAccepted);
    EXPECT_TRUE(told(notification).held);
    answer(200, jsm_result(done, status));
    return told(notification);
  }
};

TEST(Jsm, AnAlertIsDeliveredWhenItsResultIsKnownAndIsAskedForByLaterAttempts) {
  JsmBench bench;
  const auto open = told_as(NotificationKind::open, "one");
  bench.answer(202, kAccepted);
  const auto accepted = bench.told(open);
  EXPECT_EQ(accepted.outcome, OutcomeClass::unknown) << "somebody may have been paged";
  EXPECT_TRUE(accepted.held) << "no breaker counts it";
  EXPECT_EQ(accepted.retry_after, core::Duration(2s));
  const auto alert = bench.last();
  EXPECT_EQ(alert["alias"], TalkBench::kHash);
  EXPECT_EQ(alert["priority"], "P2");
  EXPECT_EQ(alert["source"], "tocsin/c1");
  EXPECT_EQ(alert["entity"], "digits");
  EXPECT_EQ(alert["tags"], (nlohmann::json{"exploding_tensor"}));
  EXPECT_EQ(alert["details"]["tensor"], "gradient/conv1.weight");
  EXPECT_THAT(std::string(alert["message"]), HasSubstr("digits: gradient/conv1.weight"));
  EXPECT_THAT(std::string(alert["description"]), HasSubstr("Lower the learning rate"));
  bench.answer(404, R"({"message":"Request not found. It might not be processed, yet."})");
  EXPECT_EQ(bench.told(open).retry_after, core::Duration(5s));
  bench.answer(200, jsm_result(true, "Created alert"));
  const auto done = bench.told(open);
  EXPECT_EQ(done.outcome, OutcomeClass::delivered);
  EXPECT_THAT(done.handles, ElementsAre(Pair("alert_id", "alert-9")));
  EXPECT_THAT(bench.asked(), ElementsAre("POST /jsm/ops/integration/v2/alerts",
                                         "GET /jsm/ops/integration/v2/alerts/requests/req-1",
                                         "GET /jsm/ops/integration/v2/alerts/requests/req-1"));
}

TEST(Jsm, WithoutAResultTheAlertIsSentAgain) {
  JsmBench bench;
  const auto open = told_as(NotificationKind::open, "one");
  bench.answer(202, kAccepted);
  (void)bench.told(open);
  for (const core::Duration wait : {core::Duration(5s), core::Duration(15s)}) {
    bench.answer(404, "{}");
    EXPECT_EQ(bench.told(open).retry_after, wait);
  }
  bench.answer(404, "{}");
  EXPECT_EQ(bench.told(open).outcome, OutcomeClass::unknown);
  bench.answer(202, kAccepted);
  EXPECT_TRUE(bench.told(open).held);
  EXPECT_EQ(bench.asked().back(), "POST /jsm/ops/integration/v2/alerts");
}

TEST(Jsm, ANoteOfTheEndClosesTheAlertAndOneThatIsNotThereNeedsNoClosing) {
  JsmBench bench;
  const auto close = told_as(NotificationKind::close, "two");
  EXPECT_EQ(bench.through(close, true, "Closed alert").outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.asked().front(), "POST /jsm/ops/integration/v2/alerts/" +
                                       std::string(TalkBench::kHash) +
                                       "/close?identifierType=alias");
  EXPECT_THAT(bench.http.requests.front().body, HasSubstr("recovered"));
  const auto none =
      bench.through(told_as(NotificationKind::close, "three"), false, "Alert does not exist");
  EXPECT_EQ(none.outcome, OutcomeClass::delivered);
  EXPECT_EQ(none.code, "no_such_alert");
}

TEST(Jsm, NewsIsANoteAndAnAlertThatAPersonClosedIsOpenedAnew) {
  JsmBench bench;
  const auto update = told_as(NotificationKind::update, "two", {{"alert_id", "alert-9"}});
  EXPECT_EQ(bench.through(update, true, "Added note").outcome, OutcomeClass::delivered);
  EXPECT_THAT(bench.asked().front(), HasSubstr("/notes?identifierType=alias"));
  const auto later = told_as(NotificationKind::update, "three");
  bench.answer(202, kAccepted);
  (void)bench.told(later);
  bench.answer(200, jsm_result(false, "Alert does not exist"));
  bench.answer(202, R"({"requestId":"req-2"})");
  EXPECT_TRUE(bench.told(later).held);
  EXPECT_EQ(bench.asked().back(), "POST /jsm/ops/integration/v2/alerts");
  bench.answer(200, jsm_result(true, "Created alert"));
  EXPECT_EQ(bench.told(later).outcome, OutcomeClass::delivered);
  EXPECT_THAT(bench.asked().back(), HasSubstr("/requests/req-2"));
}

TEST(Jsm, WhatSomebodyHasTakenOnIsAcknowledgedAndOneThatIsNotThereIsOpened) {
  JsmBench bench;
  auto taken = told_as(NotificationKind::update, "two", {{"alert_id", "alert-9"}});
  taken.reason = "acknowledged";
  taken.why = "Acknowledged by ada.";
  EXPECT_EQ(bench.through(taken, true, "Acknowledged").outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.asked().front(), "POST /jsm/ops/integration/v2/alerts/" +
                                       std::string(TalkBench::kHash) +
                                       "/acknowledge?identifierType=alias");
  EXPECT_THAT(bench.http.requests.front().body, HasSubstr("Acknowledged by ada."));
  auto later = told_as(NotificationKind::update, "three");
  later.reason = "acknowledged";
  later.kind = NotificationKind::open;  // delivery has put it in the place of an open
  bench.answer(202, kAccepted);
  (void)bench.told(later);
  EXPECT_EQ(bench.asked().back(), "POST /jsm/ops/integration/v2/alerts") << "it is not open there";
  bench.answer(200, jsm_result(true, "Created alert"));
  bench.answer(202, R"({"requestId":"req-3"})");
  EXPECT_TRUE(bench.told(later).held);
  EXPECT_THAT(bench.asked().back(), HasSubstr("/acknowledge?identifierType=alias"));
}

TEST(Jsm, AnAlertThatIsRefusedAfterItWasAcceptedIsNoDelivery) {
  JsmBench bench;
  const auto out = bench.through(told_as(NotificationKind::open, "one"), false, "Too many tags");
  EXPECT_EQ(out.outcome, OutcomeClass::bad_payload);
  EXPECT_EQ(out.detail, "Too many tags");
}

TEST(Jsm, WhereNoAttemptMayFollowWhatWasAcceptedIsUnconfirmed) {
  JsmBench bench(", retry: {max_attempts: 1}");
  bench.answer(202, kAccepted);
  const auto out = bench.told(told_as(NotificationKind::open, "one"));
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_FALSE(out.confirmed);
}

TEST(Jsm, OfVeryManyThatWaitTheOldestIsForgottenAndSentAgain) {
  JsmBench bench;
  for (int i = 0; i <= 4'096; ++i) {
    bench.answer(202, kAccepted);
    EXPECT_TRUE(bench.told(told_as(NotificationKind::open, "n" + std::to_string(i))).held);
  }
  bench.answer(200, jsm_result(true, "Created alert"));
  EXPECT_EQ(bench.told(told_as(NotificationKind::open, "n1")).outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.http.requests.back().method, "GET");
  bench.answer(202, kAccepted);
  EXPECT_TRUE(bench.told(told_as(NotificationKind::open, "n0")).held);
  EXPECT_EQ(bench.http.requests.back().method, "POST");
}

TEST(Jsm, AnswersMeanWhatTheyMeanAndTheKeyIsShownNowhere) {
  JsmBench bench;
  const auto means = [&](int status, const std::string& body,
                         std::vector<std::pair<std::string, std::string>> headers = {}) {
    bench.answer(status, body, std::move(headers));
    return bench.told(told_as(NotificationKind::open, "x" + std::to_string(status) + body));
  };
  EXPECT_EQ(means(422, "{}").outcome, OutcomeClass::bad_payload);
  EXPECT_EQ(means(401, "{}").outcome, OutcomeClass::configuration);
  EXPECT_EQ(means(429, "{}", {{"retry-after", "9"}}).retry_after, core::Duration(9s));
  EXPECT_EQ(means(503, "{}", {{"x-ratelimit-state", "THROTTLED"}}).outcome,
            OutcomeClass::throttled);
  EXPECT_EQ(means(200, "<html>log in</html>").outcome, OutcomeClass::configuration);
  EXPECT_EQ(means(202, R"({"requestId":"../../x"})").outcome, OutcomeClass::configuration);
  EXPECT_THAT(means(400, "no canary-genie-key here").detail, Not(HasSubstr("canary")));
  EXPECT_EQ(bench.header("authorization"), "GenieKey canary-genie-key");
  EXPECT_THAT(*bench.action->render(told_as(NotificationKind::open, "y")),
              Not(HasSubstr("canary")));
}

TEST(Jsm, EveryFieldOfAnEndlessIncidentIsInsideItsLimit) {
  JsmBench bench(
      ", tags: [a, b], actions: [restart], responders: [{type: team, name: ml}], "
      "visible_to: [{type: user, username: a@b.example}]");
  auto open = told_as(NotificationKind::open, "one");
  open.issues.reserve(100);  // `issue` stays where it is
  core::Issue& issue = open.issues[0].issue;
  issue.run.job = std::string(2'000, 'j');
  issue.rule = std::string(200, 'r');
  issue.summary = issue.description = std::string(60'000, 'd');
  for (int i = 0; i < 60; ++i) {
    issue.labels.set("label" + std::to_string(i), std::string(4'000, 'l'));
    open.issues.push_back(sample_issue("layer" + std::to_string(i) + std::string(3'000, 'x')));
    open.issues.back().issue.recommendation = std::to_string(i) + std::string(5'000, 'a');
  }
  bench.answer(202, kAccepted);
  (void)bench.told(open);
  const auto alert = bench.last();
  EXPECT_LE(std::string(alert["message"]).size(), 132u);  // 130 characters, "…" has 3 bytes
  EXPECT_LE(std::string(alert["description"]).size(), 15'000u);
  EXPECT_LE(std::string(alert["entity"]).size(), 512u);
  EXPECT_LE(std::string(alert["tags"][2]).size(), 50u);
  std::size_t details = 0;
  for (const auto& [name, value] : alert["details"].items()) {
    details += name.size() + std::string(value).size();
  }
  EXPECT_LE(details, 8'000u);
  EXPECT_EQ(alert["responders"][0], (nlohmann::json{{"type", "team"}, {"name", "ml"}}));
  EXPECT_EQ(alert["visibleTo"][0]["username"], "a@b.example");
  EXPECT_EQ(alert["actions"][0], "restart");
}

TEST(Jsm, CheckRefusesWhatTheFarSideWouldAndWarnsOfOpsgeniesHosts) {
  const auto errors = [](const std::string& settings) {
    return load("receivers: {a: {jsm: {api_key: k, " + settings + "}}}\n").errors;
  };
  EXPECT_THAT(errors("responders: [{type: group, name: x}]"), HasSubstr("one of team, user"));
  EXPECT_THAT(errors("responders: [{type: team}]"), HasSubstr("one of id, name and username"));
  EXPECT_THAT(errors("tags: ['" + std::string(51, 't') + "']"), HasSubstr("1 … 50 characters"));
  EXPECT_EQ(errors("url: 'https://api.eu.opsgenie.com/v2/alerts'"), "");
  config::Diagnostics diagnostics;
  const auto document = config::Document::parse(
      "receivers: {a: {jsm: {api_key: k, url: 'https://api.eu.opsgenie.com/v2/alerts'}}}\n",
      "test.yaml", [](const std::string&) { return std::nullopt; }, diagnostics);
  ReceiversConfig receivers;
  document->read(diagnostics, [&](config::Reader& root) { read_receivers(root, receivers); });
  std::string warnings;
  for (const auto& item : diagnostics.items()) {
    if (item.grade == config::Grade::warning) warnings += item.message;
  }
  EXPECT_THAT(warnings, HasSubstr("5 April 2027"));
}

}  // namespace
}  // namespace tocsin::actions
