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

struct JiraBench : TalkBench {
  explicit JiraBench(const std::string& more = "")
      : TalkBench("jira",
                  "{url: 'https://acme.example', project: OPS, email: a@b.example, "
                  "api_token: canary-token" +
                      more + "}") {}
  void found(const std::string& key) {
    answer(200, key.empty() ? R"({"issues":[]})" : R"({"issues":[{"key":")" + key + R"("}]})");
  }
  void status(const std::string& category) {
    answer(200, R"({"fields":{"status":{"statusCategory":{"key":")" + category +
                    R"("}}},"transitions":[{"id":"11","name":"Start","to":{"name":"Doing"}},)" +
                    R"({"id":"31","name":"Close it","to":{"name":"Done"}}]})");
  }
};

const std::vector<std::pair<std::string, std::string>> kOps7{{"key", "OPS-7"}};

TEST(Jira, AnIssueIsLookedForByOurLabelAndCreatedOnce) {
  JiraBench bench(", priorities: {error: High}, labels: [ml], fields: {components: [{name: x}]}");
  bench.found("");
  bench.answer(201, R"({"id":"1","key":"OPS-7"})");
  const auto out = bench.told(told_as(NotificationKind::open, "one"));
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_THAT(out.handles, ElementsAre(Pair("key", "OPS-7")));
  const std::string label = "tocsin-" + std::string(TalkBench::kHash).substr(0, 32);
  EXPECT_THAT(bench.asked()[0],
              HasSubstr("GET /rest/api/2/search/jql?jql=project%20%3D%20%22OPS%22"));
  EXPECT_THAT(bench.asked()[0], HasSubstr(label));
  EXPECT_EQ(bench.asked()[1], "POST /rest/api/2/issue");
  const auto fields = bench.last()["fields"];
  EXPECT_EQ(fields["project"]["key"], "OPS");
  EXPECT_EQ(fields["issuetype"]["name"], "Task");
  EXPECT_EQ(fields["priority"]["name"], "High");
  EXPECT_EQ(fields["labels"], (nlohmann::json{"tocsin", label, "ml"}));
  EXPECT_EQ(fields["components"][0]["name"], "x");
  EXPECT_THAT(std::string(fields["summary"]), HasSubstr("digits: gradient/conv1.weight"));
  EXPECT_EQ(bench.header("authorization"), "Basic YUBiLmV4YW1wbGU6Y2FuYXJ5LXRva2Vu");
}

TEST(Jira, OneThatIsThereGetsACommentInPlaceOfASecondIssue) {
  JiraBench bench;
  bench.found("OPS-7");
  bench.answer(201, "{}");
  EXPECT_EQ(bench.told(told_as(NotificationKind::open, "one")).outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.asked().back(), "POST /rest/api/2/issue/OPS-7/comment");
  bench.answer(201, "{}");
  (void)bench.told(told_as(NotificationKind::update, "two", kOps7));
  EXPECT_EQ(bench.asked().back(), "POST /rest/api/2/issue/OPS-7/comment");
  EXPECT_EQ(bench.http.requests.size(), 3u) << "the key is known: nothing is looked for";
}

TEST(Jira, AtTheEndItTakesItsTransitionByTheNameOfTheStatusAndIsCommentedOnce) {
  JiraBench bench(", transition: done");
  bench.status("new");
  bench.answer(204, "");
  bench.answer(503, "");
  const auto close = told_as(NotificationKind::close, "two", kOps7);
  EXPECT_EQ(bench.told(close).outcome, OutcomeClass::transient);
  EXPECT_EQ(nlohmann::json::parse(bench.http.requests[1].body)["transition"]["id"], "31");
  bench.answer(201, "{}");
  EXPECT_EQ(bench.told(close).outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.http.requests.size(), 4u) << "it was moved already";
  EXPECT_THAT(std::string(bench.last()["body"]), HasSubstr("recovered"));
  bench.status("done");
  bench.answer(201, "{}");
  (void)bench.told(told_as(NotificationKind::close, "three", kOps7));
  EXPECT_EQ(bench.asked().back(), "POST /rest/api/2/issue/OPS-7/comment");
}

TEST(Jira, ATransitionThatIsNotThereIsNamedWithThoseThatAre) {
  JiraBench bench(", transition: Resolve");
  bench.status("new");
  const auto out = bench.told(told_as(NotificationKind::close, "two", kOps7));
  EXPECT_EQ(out.outcome, OutcomeClass::configuration);
  EXPECT_THAT(out.detail, HasSubstr("\"Resolve\" now; it has: Start, Close it"));
}

TEST(Jira, AnIssueThatWasDeletedIsCreatedAnewAndItsEndNeedsNone) {
  JiraBench bench;
  bench.answer(404, "{}");
  bench.found("");
  bench.answer(201, R"({"key":"OPS-8"})");
  EXPECT_THAT(bench.told(told_as(NotificationKind::update, "two", kOps7)).handles,
              ElementsAre(Pair("key", "OPS-8")));
  bench.answer(404, "{}");
  bench.found("");
  EXPECT_EQ(bench.told(told_as(NotificationKind::close, "three", kOps7)).code, "no_issue");
}

TEST(Jira, WhatASettingIsToBlameForIsAWrongConfiguration) {
  JiraBench bench;
  const auto created = [&](const std::string& id, const std::string& errors) {
    bench.found("");
    bench.answer(400, R"({"errors":)" + errors + "}");
    return bench.told(told_as(NotificationKind::open, id)).outcome;
  };
  EXPECT_EQ(created("a", R"({"issuetype":"Specify a valid issue type"})"),
            OutcomeClass::configuration);
  EXPECT_EQ(created("b", R"({"summary":"too long"})"), OutcomeClass::bad_payload);
  bench.answer(400, R"({"errorMessages":["The value 'OPS' does not exist"]})");
  EXPECT_EQ(bench.told(told_as(NotificationKind::open, "c")).outcome, OutcomeClass::configuration);
  bench.answer(200, "<html>log in</html>");
  EXPECT_EQ(bench.told(told_as(NotificationKind::open, "d")).code, "not_jira");
}

TEST(Jira, TextOfOthersIsNoMarkup) {
  JiraBench bench;
  auto open = told_as(NotificationKind::open, "one");
  open.issues[0].issue.summary = "[~admin] *b* {color:red} a\\\\b !x.png!";
  bench.found("");
  bench.answer(201, R"({"key":"OPS-7"})");
  (void)bench.told(open);
  EXPECT_THAT(std::string(bench.last()["fields"]["description"]),
              HasSubstr("\\[\\~admin\\] \\*b\\* \\{color:red\\} a\\\u200b\\\u200bb \\!x.png\\!"));
}

TEST(Jira, DataCenterHasATokenOfItsOwnAndTheOlderSearch) {
  TalkBench bench("jira", "{url: 'https://jira.example/base', project: OPS, bearer_token: pat}");
  bench.answer(200, R"({"issues":[{"key":"OPS-7"}]})");
  bench.answer(201, "{}");
  EXPECT_EQ(bench.told(told_as(NotificationKind::open, "one")).outcome, OutcomeClass::delivered);
  EXPECT_THAT(bench.asked()[0], HasSubstr("GET /base/rest/api/2/search?jql="));
  EXPECT_EQ(bench.header("authorization"), "Bearer pat");
}

TEST(Jira, NoTokenIsStoredOrComesBackAndCheckWantsOne) {
  JiraBench bench;
  EXPECT_THAT(*bench.action->render(sample_notification()), Not(HasSubstr("canary")));
  bench.answer(401, "canary-token");
  EXPECT_EQ(bench.told(sample_notification()).detail, "<redacted>");
  const auto errors = [](const std::string& settings) {
    return load("receivers: {a: {jira: {url: 'https://x.example', " + settings + "}}}\n").errors;
  };
  EXPECT_THAT(errors("project: OPS"), HasSubstr("or bearer_token (Data Center)"));
  EXPECT_THAT(errors("project: 'O\"S', bearer_token: t"), HasSubstr("expected the key"));
  EXPECT_THAT(errors("project: OPS, bearer_token: t, priorities: {fatal: X}"),
              HasSubstr("is no severity"));
  EXPECT_THAT(errors("project: OPS, bearer_token: t, labels: ['a b']"), HasSubstr("is no label"));
}

}  // namespace
}  // namespace tocsin::actions
