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

constexpr char kSysId[] = "0123456789abcdef0123456789abcdef";

std::string snow_settings(const std::string& more) {
  return "{url: 'https://acme.example/', basic_auth: {username: tocsin, password: canary-word}, " +
         more + "}";
}

std::string snow_record(const std::string& state = "1", const std::string& active = "true") {
  return R"({"sys_id":")" + std::string(kSysId) + R"(","number":"INC0010001","state":")" + state +
         R"(","active":")" + active + R"("})";
}

struct SnowBench : TalkBench {
  explicit SnowBench(const std::string& more = "mode: incident")
      : TalkBench("servicenow", snow_settings(more)) {}
  void found(const std::string& all) { answer(200, R"({"result":[)" + all + "]}"); }
  void written(int status, const std::string& record = snow_record()) {
    answer(status, R"({"result":)" + record + "}");
  }
};

const std::vector<std::pair<std::string, std::string>> kKnown{{"sys_id", kSysId},
                                                              {"number", "INC0010001"}};

TEST(ServiceNow, AnIncidentIsLookedForCreatedOnceAndNamedByItsSysId) {
  SnowBench bench("mode: incident, fields: {assignment_group: ML on call}");
  bench.found("");
  bench.written(201);
  const auto out = bench.told(told_as(NotificationKind::open, "one"));
  EXPECT_EQ(out.outcome, OutcomeClass::delivered);
  EXPECT_THAT(out.handles, ElementsAre(Pair("sys_id", kSysId), Pair("number", "INC0010001")));
  const std::string search = bench.http.requests[0].url;
  EXPECT_THAT(search, HasSubstr("https://acme.example/api/now/table/incident?sysparm_query="
                                "correlation_id%3D" +
                                std::string(TalkBench::kHash) +
                                "%5Eactive%3Dtrue%5Estate%21%3D6&sysparm_limit=1"));
  const auto record = bench.last();
  EXPECT_EQ(record["correlation_id"], TalkBench::kHash);
  EXPECT_EQ(record["impact"], "2");
  EXPECT_EQ(record["urgency"], "2");
  EXPECT_EQ(record["assignment_group"], "ML on call");
  EXPECT_THAT(std::string(record["short_description"]), HasSubstr("gradient/conv1.weight"));
  EXPECT_EQ(bench.header("authorization"), "Basic dG9jc2luOmNhbmFyeS13b3Jk");
}

TEST(ServiceNow, OneThatIsThereAlreadyIsNotCreatedASecondTime) {
  SnowBench bench;
  bench.found(snow_record());
  bench.written(200);
  EXPECT_EQ(bench.told(told_as(NotificationKind::open, "one")).outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.http.requests.size(), 2u);
  EXPECT_EQ(bench.http.requests[1].method, "PATCH");
}

TEST(ServiceNow, NewsIsAWorkNoteAndTheEndResolvesTheRecord) {
  SnowBench bench;
  bench.written(200);
  auto update = told_as(NotificationKind::update, "two", kKnown);
  EXPECT_EQ(bench.told(update).outcome, OutcomeClass::delivered);
  EXPECT_THAT(bench.asked().back(),
              HasSubstr("PATCH /api/now/table/incident/" + std::string(kSysId)));
  EXPECT_TRUE(bench.last().contains("work_notes"));
  EXPECT_FALSE(bench.last().contains("urgency")) << "a person may have lowered it";
  update.issues[0].issue.severity = core::Severity::critical;
  bench.written(200);
  (void)bench.told(update);
  EXPECT_EQ(bench.last()["urgency"], "1");
  bench.written(200, snow_record("6"));
  (void)bench.told(told_as(NotificationKind::close, "three", kKnown));
  EXPECT_EQ(bench.last()["state"], "6");
  EXPECT_EQ(bench.last()["close_code"], "Solution provided");
  EXPECT_THAT(std::string(bench.last()["close_notes"]), HasSubstr("recovered"));
}

TEST(ServiceNow, WhatSomebodyHasTakenOnIsInProgress) {
  SnowBench bench;
  bench.written(200, snow_record("2"));
  auto taken = told_as(NotificationKind::update, "two", kKnown);
  taken.reason = "acknowledged";
  taken.why = "Acknowledged by ada.";
  EXPECT_EQ(bench.told(taken).outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.last()["state"], "2");
  EXPECT_THAT(std::string(bench.last()["work_notes"]), HasSubstr("Acknowledged by ada."));
  bench.written(200, snow_record("2"));
  (void)bench.told(told_as(NotificationKind::update, "three", kKnown));
  EXPECT_FALSE(bench.last().contains("state")) << "a person may have changed it";
}

TEST(ServiceNow, NewsOfOneThatAPersonClosedOpensANewOneAndItsEndNothing) {
  SnowBench bench;
  bench.answer(403, R"({"error":{"message":"ACL Exception"}})");
  bench.found("");
  bench.written(201);
  EXPECT_EQ(bench.told(told_as(NotificationKind::update, "two", kKnown)).outcome,
            OutcomeClass::delivered);
  EXPECT_EQ(bench.http.requests.back().method, "POST");
  bench.written(200, snow_record("6"));  // resolved by a person
  bench.found("");
  bench.written(201);
  (void)bench.told(told_as(NotificationKind::update, "three", kKnown));
  EXPECT_EQ(bench.http.requests.back().method, "POST");
  bench.answer(404, "{}");
  bench.found("");
  const auto end = bench.told(told_as(NotificationKind::close, "four", kKnown));
  EXPECT_EQ(end.outcome, OutcomeClass::delivered);
  EXPECT_EQ(end.code, "no_incident");
  EXPECT_EQ(bench.http.requests.back().method, "GET");
}

TEST(ServiceNow, AUserThatMayNotWriteIsAWrongConfiguration) {
  SnowBench bench;
  bench.found(snow_record());
  bench.answer(403, "{}");
  const auto out = bench.told(told_as(NotificationKind::open, "one"));
  EXPECT_EQ(out.outcome, OutcomeClass::configuration);
  EXPECT_THAT(out.detail, HasSubstr("INC0010001"));
  bench.answer(200, "<html>Instance Hibernating</html>");
  EXPECT_EQ(bench.told(told_as(NotificationKind::open, "two")).code, "not_servicenow");
  bench.answer(429, "{}", {{"retry-after", "30"}});
  EXPECT_EQ(bench.told(told_as(NotificationKind::open, "three")).outcome, OutcomeClass::throttled);
}

TEST(ServiceNow, AnEventHasTheFieldsOfEventManagementAndItsEndClearsTheAlert) {
  SnowBench bench("mode: event");
  EXPECT_EQ(bench.told(told_as(NotificationKind::open, "one")).outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.asked().back(), "POST /api/global/em/jsonv2");
  const auto event = bench.last()["records"][0];
  EXPECT_EQ(event["source"], "tocsin");
  EXPECT_EQ(event["event_class"], "tocsin c1");
  EXPECT_EQ(event["severity"], "2");
  EXPECT_EQ(event["resource"], "digits");
  EXPECT_EQ(event["type"], "exploding_tensor");
  EXPECT_EQ(event["metric_name"], "non_finite");
  EXPECT_EQ(event["time_of_event"], "2026-01-02 03:04:05");
  EXPECT_EQ(event["resolution_state"], "New");
  EXPECT_EQ(nlohmann::json::parse(std::string(event["additional_info"]))["tensor"],
            "gradient/conv1.weight");
  (void)bench.told(told_as(NotificationKind::close, "two"));
  const auto end = bench.last()["records"][0];
  EXPECT_EQ(end["severity"], "0");
  EXPECT_EQ(end["resolution_state"], "Closing");
  EXPECT_EQ(end["message_key"], event["message_key"]);
}

TEST(ServiceNow, TheStoredFormAndTheAnswersHaveNoPassword) {
  SnowBench bench;
  EXPECT_THAT(*bench.action->render(sample_notification()), Not(HasSubstr("canary")));
  bench.answer(401, "not dG9jc2luOmNhbmFyeS13b3Jk and not canary-word");
  EXPECT_EQ(bench.told(sample_notification()).detail, "not <redacted> and not <redacted>");
}

TEST(ServiceNow, CheckWantsALoginAndNumbersOfStates) {
  const auto errors = [](const std::string& settings) {
    return load("receivers: {a: {servicenow: {url: 'https://acme.example', " + settings + "}}}\n")
        .errors;
  };
  EXPECT_THAT(errors("mode: incident"), HasSubstr("basic_auth, oauth2 or bearer_token"));
  EXPECT_EQ(errors("mode: incident, bearer_token: t"), "");
  EXPECT_THAT(errors("mode: incident, bearer_token: t, close_state: Resolved"),
              HasSubstr("number of a state"));
  EXPECT_THAT(errors("mode: event, bearer_token: t, fields: {a: b}"), HasSubstr("mode: incident"));
  EXPECT_THAT(errors("mode: incident, bearer_token: t, fields: {state: '2'}"),
              HasSubstr("set by Tocsin"));
}

}  // namespace
}  // namespace tocsin::actions
