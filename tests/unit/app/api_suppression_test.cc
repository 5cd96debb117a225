// What holds issues back, as both APIs say it; silences that recur or end with the problem.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/api_fixture.h"

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kHoldingBack = R"(
time_intervals:
  - {name: always, intervals: [{times: [{start: '00:00', end: '24:00'}]}]}
inhibit_rules:
  - {name: cause-hides-rest, source_matchers: ['rule="Cause"'], target_matchers: ['rule="Effect"'], equal: [job]}
route:
  receiver: all
  group_by: [job]
  routes:
    - {matchers: ['team="night"'], receiver: vision, mute_time_intervals: [always]}
receivers:
  all: {publish_metric: {}}
  vision: {publish_metric: {id: v}}
http:
  auth:
    tokens:
      - {name: shift, role: operator, token: "${SHIFT}"}
)";

class ApiSuppression : public ApiTest {
 protected:
  [[nodiscard]] const char* config_text() const override { return kHoldingBack; }

  void post(const std::string& alerts) {
    const auto posted = ask("POST", "/api/v2/alerts", "", alerts);
    ASSERT_EQ(posted.status, 200) << posted.text;
  }
  Json issue(const std::string& rule) {
    for (int i = 0; i < 500; ++i) {
      const Json out = ask("GET", "/api/v1/issues", "rule=" + rule).json;
      if (out.contains("items") && !out["items"].empty()) return out["items"][0];
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return {};
  }
  void post_all() {
    post(R"([{"labels": {"alertname": "Cause", "job": "vit"}},
             {"labels": {"alertname": "Effect", "job": "vit"}},
             {"labels": {"alertname": "Effect", "job": "bert"}},
             {"labels": {"alertname": "Night", "job": "gan", "team": "night"}}])");
    alerts(4);
  }
};

TEST_F(ApiSuppression, AnIssueSaysByWhichRuleAndSourceItIsInhibited) {
  post_all();
  const std::string source = issue("Cause")["key"];
  const auto listed = ask("GET", "/api/v1/issues", "rule=Effect").json["items"];
  ASSERT_THAT(listed, SizeIs(2));
  for (const Json& one : listed) {
    const Json wanted = one["job"] == "vit" || one["labels"]["job"] == "vit"
                            ? Json::array({{{"rule", "cause-hides-rest"}, {"source", source}}})
                            : Json::array();
    EXPECT_EQ(one["inhibited_by"], wanted) << one;
    EXPECT_THAT(one["muted_by"], IsEmpty());
    EXPECT_EQ(one["acked_by"], nullptr);
    EXPECT_EQ(one["flapping_since"], nullptr);
  }
  EXPECT_EQ(issue("Night")["muted_by"], Json::array({"always"}));
  EXPECT_THAT(issue("Cause")["inhibited_by"], IsEmpty());
}

TEST_F(ApiSuppression, AlertsSayItTooAndAreNarrowedByIt) {
  post_all();
  Json held;
  std::string source;
  for (const Json& one : alerts(4)) {
    if (one["labels"]["alertname"] == "Cause") source = one["fingerprint"];
    if (one["labels"]["alertname"] == "Effect" && one["labels"]["job"] == "vit") held = one;
  }
  EXPECT_EQ(held["status"]["inhibitedBy"], Json::array({source}));
  EXPECT_EQ(held["status"]["state"], "suppressed");
  EXPECT_THAT(alerts(3, "inhibited=false"), SizeIs(3));
  EXPECT_THAT(alerts(3, "muted=false"), SizeIs(3));
  EXPECT_THAT(alerts(2, "active=false"), SizeIs(2)) << "the two that are held back";
  EXPECT_THAT(alerts(2, "inhibited=false&muted=false"), SizeIs(2));
  ASSERT_EQ(ask("POST", "/api/v2/silences", "", silence("job", "vit").dump()).status, 200);
  for (const Json& one : alerts(4)) {
    if (one["labels"]["job"] != "vit") continue;
    EXPECT_THAT(one["status"]["silencedBy"], SizeIs(1));
    const bool effect = one["labels"]["alertname"] == "Effect";
    EXPECT_THAT(one["status"]["inhibitedBy"], SizeIs(effect ? 1 : 0)) << "all reasons are said";
  }
}

TEST_F(ApiSuppression, ASourceThatIsOverHoldsNothingBack) {
  post_all();
  post(R"([{"labels": {"alertname": "Cause", "job": "vit"}, "endsAt": "2026-01-02T03:04:05Z"}])");
  Json left;
  for (int i = 0; i < 500; ++i) {
    left = ask("GET", "/api/v1/issues", "rule=Effect&filter=job%3D%22vit%22").json["items"];
    if (left.size() == 1 && left[0]["inhibited_by"].empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_THAT(left[0]["inhibited_by"], IsEmpty());
}

TEST_F(ApiSuppression, ASilenceRecursByANameOfTheConfigurationOrByItsOwnTimes) {
  const auto put = [&](const std::string& more) {
    return ask("POST", "/api/v1/silences", "",
               R"({"matchers": "{job=\"vit\"}", "comment": "x", )" + more + "}");
  };
  const auto named = put(R"("recurrence": {"time_interval": "always"})");
  ASSERT_EQ(named.status, 202) << named.text;
  const Json row = named.json["silence"];
  EXPECT_EQ(row["recurrence"]["intervals"][0]["times"][0]["start"], "00:00");
  EXPECT_TRUE(row["in_force"]);
  const auto lasts = *core::parse_rfc3339(row["ends_at"].get<std::string>()) -
                     *core::parse_rfc3339(row["starts_at"].get<std::string>());
  EXPECT_EQ(lasts, std::chrono::hours(24 * 30)) << "as the command has it";
  const auto own = put(
      R"("recurrence": {"intervals": [{"weekdays": ["sunday"], "months": ["1"], "days_of_month": ["-1"],
                        "years": ["2001"], "times": ["02:00-04:00"], "location": "Europe/Berlin"}]})");
  ASSERT_EQ(own.status, 202) << own.text;
  EXPECT_FALSE(own.json["silence"]["in_force"]);
  EXPECT_EQ(own.json["silence"]["recurrence"]["intervals"][0]["location"], "Europe/Berlin");
  const auto refused = [&](const std::string& more) {
    const auto told = put(more);
    EXPECT_EQ(told.status, 400) << more;
    return told.text;
  };
  EXPECT_THAT(refused(R"("recurrence": {"time_interval": "alway"})"), HasSubstr("did you mean"));
  EXPECT_THAT(refused(R"("recurrence": {"interval": []})"), HasSubstr("intervals"));
  EXPECT_THAT(refused(R"("recurrence": {})"), HasSubstr("either time_interval or intervals"));
  EXPECT_THAT(refused(R"("recurrence": {"intervals": []})"), HasSubstr("at least one"));
  EXPECT_THAT(refused(R"("recurrence": {"intervals": [{"times": ["02:00"]}]})"),
              HasSubstr("20:00-24:00"));
  EXPECT_THAT(refused(R"("recurrence": {"intervals": [{"weekdays": ["sunndai"]}]})"),
              HasSubstr("recurrence"));
  EXPECT_THAT(refused(R"("recurrence": {"intervals": [{"location": "Mars/Olympus"}]})"),
              HasSubstr("Mars/Olympus"));
}

TEST_F(ApiSuppression, ASilenceHasSetsAndEndsWithTheProblemAndAChangeLeavesTheRest) {
  const auto made = ask("POST", "/api/v1/silences", "",
                        R"({"matcher_sets": ["job=\"a\"", "job=\"b\""], "comment": "x",
                            "until_resolved": true, "quiet_for": "5m", "auto_expire_unmatched": "1d",
                            "announce_on_unmute": "reminder", "annotations": {"ticket": "OPS-7"}})");
  ASSERT_EQ(made.status, 202) << made.text;
  const Json row = made.json["silence"];
  EXPECT_EQ(row["matcher_sets"], Json::array({"{job=\"a\"}", "{job=\"b\"}"}));
  EXPECT_EQ(row["quiet_for"], "5m");
  EXPECT_EQ(row["auto_expire_unmatched"], "1d");
  EXPECT_EQ(row["annotations"]["ticket"], "OPS-7");
  const auto changed = ask("POST", "/api/v1/silences", "",
                           R"({"id": ")" + row["id"].get<std::string>() +
                               R"(", "version": 1, "matcher_sets": ["job=\"a\"", "job=\"b\""],
                                  "duration": "3h", "starts_at": ")" +
                               row["starts_at"].get<std::string>() + R"(", "comment": "y",
                                  "announce_on_unmute": "never"})");
  ASSERT_EQ(changed.status, 202) << changed.text;
  const Json after = changed.json["silence"];
  EXPECT_EQ(after["comment"], "y");
  EXPECT_TRUE(after["until_resolved"]);
  EXPECT_EQ(after["quiet_for"], "5m");
  EXPECT_EQ(after["announce_on_unmute"], "never");
  EXPECT_EQ(after["annotations"]["ticket"], "OPS-7");
  const auto refused = [&](const std::string& more) {
    return ask("POST", "/api/v1/silences", "",
               R"({"duration": "1h", "comment": "x", )" + more + "}")
        .text;
  };
  EXPECT_THAT(refused(R"("matchers": "job=\"a\"", "matcher_sets": ["job=\"a\""])"),
              HasSubstr("either matchers or matcher_sets"));
  EXPECT_THAT(refused(R"("matcher_sets": [])"), HasSubstr("matcher_sets: expected"));
  EXPECT_THAT(refused(R"("matchers": "job=\"a\"", "until_resolved": "yes")"),
              HasSubstr("true or false"));
  EXPECT_THAT(refused(R"("matchers": "job=\"a\"", "quiet_for": "-5m")"), HasSubstr("quiet_for"));
  EXPECT_THAT(refused(R"("matchers": "job=\"a\"", "announce_on_unmute": "loudly")"),
              HasSubstr("never or reminder"));
  EXPECT_THAT(refused(R"("matchers": "job=\"a\"", "annotations": {"a": 7})"),
              HasSubstr("annotations"));
}

TEST_F(ApiSuppression, GroupsOfARouterThatHasNotRunAreAnEmptyList) {
  const auto listed = ask("GET", "/api/v1/groups");
  ASSERT_EQ(listed.status, 200) << listed.text;
  EXPECT_THAT(listed.json["items"], IsEmpty());
  EXPECT_EQ(ask("GET", "/api/v1/groups/none").status, 404);
  EXPECT_EQ(ask("GET", "/api/v1/groups", "rout=x").status, 400);
}

}  // namespace
}  // namespace tocsin::app
