// The API over a journal: what Alertmanager's clients ask, without sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>

#include "tests/unit/app/api_fixture.h"

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ApiTest, AnAlertOfAnotherProducerComesBackWithWhoIsTold) {
  const auto posted = ask("POST", "/api/v2/alerts", "", R"([
    {"labels": {"alertname": "GpuFellOff", "team": "vision", "job": "vit"},
     "annotations": {"summary": "GPU 3 has fallen off the bus", "owner": "ada"},
     "startsAt": "2026-01-02T03:04:05Z", "generatorURL": "http://prometheus/graph"}])");
  ASSERT_EQ(posted.status, 200) << posted.text;
  const Json list = alerts(1);
  ASSERT_THAT(list, SizeIs(1));
  const Json& one = list[0];
  EXPECT_EQ(one["labels"]["alertname"], "GpuFellOff");
  EXPECT_EQ(one["labels"]["rule"], "GpuFellOff");
  EXPECT_EQ(one["annotations"]["summary"], "GPU 3 has fallen off the bus");
  EXPECT_EQ(one["annotations"]["owner"], "ada");
  EXPECT_EQ(one["startsAt"], "2026-01-02T03:04:05.000Z");
  EXPECT_EQ(one["generatorURL"], "http://prometheus/graph");
  EXPECT_EQ(one["status"]["state"], "active");
  EXPECT_EQ(one["receivers"], Json::parse(R"([{"name": "vision"}])"));
  const Json groups = ask("GET", "/api/v2/alerts/groups").json;
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_EQ(groups[0]["labels"], Json::parse(R"({"job": "vit"})"));
  EXPECT_EQ(groups[0]["receiver"]["name"], "vision");
  EXPECT_THAT(groups[0]["alerts"], SizeIs(1));
}

TEST_F(ApiTest, AFilterAndAReceiverNarrowTheList) {
  ask("POST", "/api/v2/alerts", "", R"([{"labels": {"alertname": "A", "team": "vision"}},
                                        {"labels": {"alertname": "B"}}])");
  ASSERT_THAT(alerts(2), SizeIs(2));
  EXPECT_EQ(alerts(1, "filter=alertname%3D%22B%22")[0]["labels"]["alertname"], "B");
  EXPECT_EQ(alerts(1, "receiver=vis.*")[0]["labels"]["alertname"], "A");
  EXPECT_THAT(alerts(0, "receiver=vis"), IsEmpty()) << "the whole name";
  EXPECT_EQ(ask("GET", "/api/v2/alerts", "filter=%7B").status, 400);
  const auto misspelt = ask("GET", "/api/v2/alerts", "activ=true");
  EXPECT_EQ(misspelt.status, 400);
  EXPECT_THAT(misspelt.text, HasSubstr("did you mean \\\"active\\\"?"));
}

TEST_F(ApiTest, AnAlertEndsWhenItsProducerSaysSo) {
  ask("POST", "/api/v2/alerts", "",
      R"([{"labels": {"alertname": "A"}, "startsAt": "2026-01-02T03:04:05Z"}])");
  ASSERT_THAT(alerts(1), SizeIs(1));
  const auto ended = ask("POST", "/api/v2/alerts", "", R"([{"labels": {"alertname": "A"},
      "startsAt": "2026-01-02T03:04:05Z", "endsAt": "2026-01-02T04:00:00Z"}])");
  EXPECT_EQ(ended.status, 200) << ended.text;
  EXPECT_THAT(alerts(0), IsEmpty());
}

TEST_F(ApiTest, OneBadAlertKeepsNoOtherFromBeingTaken) {
  const auto posted =
      ask("POST", "/api/v2/alerts", "", R"([{"labels": {}}, {"labels": {"alertname": "A"}},
      {"labels": {"a": 1}}, {"labels": {"alertname": "B"}, "startsAt": "yesterday"}, 7])");
  EXPECT_EQ(posted.status, 400);
  EXPECT_THAT(posted.json["detail"].get<std::string>(), HasSubstr("4 of 5 refused; event 1: "));
  EXPECT_THAT(posted.json["detail"].get<std::string>(),
              HasSubstr("event 4: startsAt: expected a time"));
  EXPECT_EQ(alerts(1)[0]["labels"]["alertname"], "A");
  EXPECT_EQ(ask("POST", "/api/v2/alerts", "", "{").status, 400);
  EXPECT_EQ(ask("POST", "/api/v2/alerts", "", "{}").status, 400);
}

TEST_F(ApiTest, ASilenceHoldsAtOnceAndEndsAtOnce) {
  ask("POST", "/api/v2/alerts", "", R"([{"labels": {"alertname": "A"}}])");
  ASSERT_THAT(alerts(1), SizeIs(1));
  const auto made = ask("POST", "/api/v2/silences", "", silence("alertname", "A").dump());
  ASSERT_EQ(made.status, 200) << made.text;
  const std::string id = made.json["silenceID"];
  const Json held = ask("GET", "/api/v2/alerts").json;
  EXPECT_EQ(held[0]["status"]["state"], "suppressed");
  EXPECT_EQ(held[0]["status"]["silencedBy"], Json::array({id}));
  EXPECT_THAT(ask("GET", "/api/v2/alerts", "silenced=false").json, IsEmpty());
  const Json shown = ask("GET", "/api/v2/silence/" + id).json;
  EXPECT_EQ(shown["status"]["state"], "active");
  EXPECT_EQ(shown["matchers"][0]["name"], "rule") << "issues of our own rules have no alertname";
  EXPECT_EQ(shown["createdBy"], "ada");
  EXPECT_EQ(ask("DELETE", "/api/v2/silence/" + id).status, 200);
  EXPECT_EQ(ask("DELETE", "/api/v2/silence/" + id).status, 200) << "once more";
  EXPECT_EQ(ask("GET", "/api/v2/silence/" + id).json["status"]["state"], "expired");
  EXPECT_EQ(ask("GET", "/api/v2/alerts").json[0]["status"]["state"], "active");
}

TEST_F(ApiTest, ALaterEndIsTheSameSilenceAndOtherMatchersAnother) {
  Json asked = silence("job", "vit");
  const std::string id = ask("POST", "/api/v2/silences", "", asked.dump()).json["silenceID"];
  asked["id"] = id;
  asked["endsAt"] = core::to_rfc3339(core::SystemClock().now() + std::chrono::hours(5));
  EXPECT_EQ(ask("POST", "/api/v2/silences", "", asked.dump()).json["silenceID"], id);
  EXPECT_EQ(ask("GET", "/api/v2/silence/" + id).json["endsAt"], asked["endsAt"]);
  asked["matchers"][0]["value"] = "bert";
  const std::string other = ask("POST", "/api/v2/silences", "", asked.dump()).json["silenceID"];
  EXPECT_NE(other, id);
  EXPECT_EQ(ask("GET", "/api/v2/silence/" + id).json["status"]["state"], "expired");
  EXPECT_THAT(ask("GET", "/api/v2/silences").json, SizeIs(2));
  EXPECT_THAT(ask("GET", "/api/v2/silences", "filter=job%3D%22bert%22").json, SizeIs(1));
}

TEST_F(ApiTest, AChangeNamesTheVersionItFollowsFromAndComesTooLateOtherwise) {
  Json asked = silence("job", "vit");
  const std::string id = ask("POST", "/api/v2/silences", "", asked.dump()).json["silenceID"];
  EXPECT_EQ(ask("GET", "/api/v2/silence/" + id).json["version"], 1);
  asked["id"] = id;
  asked["comment"] = "first";
  asked["version"] = 1;
  EXPECT_EQ(ask("POST", "/api/v2/silences", "", asked.dump()).status, 200);
  asked["comment"] = "second";
  const auto late = ask("POST", "/api/v2/silences", "", asked.dump());
  EXPECT_EQ(late.status, 409) << late.text;
  EXPECT_THAT(late.text, HasSubstr("is at version 2 now"));
  const Json shown = ask("GET", "/api/v2/silence/" + id).json;
  EXPECT_EQ(shown["comment"], "first");
  EXPECT_EQ(shown["version"], 2);
  asked.erase("version");  // as amtool sends it
  EXPECT_EQ(ask("POST", "/api/v2/silences", "", asked.dump()).json["silenceID"], id);
  EXPECT_EQ(ask("GET", "/api/v2/silence/" + id).json["comment"], "second");
  asked["version"] = "two";
  EXPECT_EQ(ask("POST", "/api/v2/silences", "", asked.dump()).status, 400);
}

TEST_F(ApiTest, AnExpiredSilenceIsNeverChangedButReplaced) {
  Json asked = silence("job", "vit");
  const std::string id = ask("POST", "/api/v2/silences", "", asked.dump()).json["silenceID"];
  ask("DELETE", "/api/v2/silence/" + id);
  const Json before = ask("GET", "/api/v2/silence/" + id).json;
  asked["id"] = id;
  const std::string other = ask("POST", "/api/v2/silences", "", asked.dump()).json["silenceID"];
  EXPECT_NE(other, id);
  EXPECT_EQ(ask("GET", "/api/v2/silence/" + other).json["replaces"], id);
  EXPECT_EQ(ask("GET", "/api/v2/silence/" + id).json, before);
  EXPECT_EQ(ask("DELETE", "/api/v2/silence/sil_nobody").status, 404);
}

TEST_F(ApiTest, OneOfSeveralSetsOfMatchersIsEnough) {
  ask("POST", "/api/v2/alerts", "", R"([{"labels": {"alertname": "A"}},
                                        {"labels": {"alertname": "B"}}, {"labels": {"alertname": "C"}}])");
  ASSERT_THAT(alerts(3), SizeIs(3));
  Json asked = silence("alertname", "A");
  asked["matcherSets"] = {silence("alertname", "A")["matchers"],
                          silence("alertname", "B")["matchers"]};
  asked["annotations"] = {{"ticket", "OPS-7"}};
  const auto made = ask("POST", "/api/v2/silences", "", asked.dump());
  ASSERT_EQ(made.status, 200) << made.text;
  const std::string id = made.json["silenceID"];
  EXPECT_EQ(alerts(1, "silenced=false")[0]["labels"]["alertname"], "C");
  Json shown = ask("GET", "/api/v2/silence/" + id).json;
  EXPECT_THAT(shown["matcherSets"], SizeIs(2));
  EXPECT_EQ(shown["annotations"]["ticket"], "OPS-7");
  EXPECT_THAT(ask("GET", "/api/v2/silences", "filter=rule%3D%22B%22").json, SizeIs(1));
  // A client that knows no sets sends back what it has read of them.
  shown.erase("matcherSets");
  shown.erase("annotations");
  shown["endsAt"] = core::to_rfc3339(core::SystemClock().now() + std::chrono::hours(5));
  EXPECT_EQ(ask("POST", "/api/v2/silences", "", shown.dump()).json["silenceID"], id);
  EXPECT_THAT(ask("GET", "/api/v2/silence/" + id).json["matcherSets"], SizeIs(2));
  EXPECT_EQ(ask("GET", "/api/v2/silence/" + id).json["annotations"]["ticket"], "OPS-7");
}

TEST_F(ApiTest, WhatMostWouldNotMeanNeedsForce) {
  Json wide = silence("job", "");
  wide["matchers"][0]["isEqual"] = false;
  EXPECT_THAT(ask("POST", "/api/v2/silences", "", wide.dump()).text, HasSubstr("force=true"));
  EXPECT_EQ(ask("POST", "/api/v2/silences", "force=true", wide.dump()).status, 200);
  Json lasting = silence("job", "vit");
  lasting["endsAt"] = core::to_rfc3339(core::SystemClock().now() + std::chrono::hours(24 * 100));
  EXPECT_EQ(ask("POST", "/api/v2/silences", "", lasting.dump()).status, 400);
  EXPECT_EQ(ask("POST", "/api/v2/silences", "force=true", lasting.dump()).status, 200);
  EXPECT_EQ(ask("POST", "/api/v2/silences", "froce=true", lasting.dump()).status, 400);
}

TEST_F(ApiTest, ASilenceThatIsNoneSaysWhy) {
  const auto refused = [&](Json asked) {
    return ask("POST", "/api/v2/silences", "", asked.dump()).text;
  };
  Json without = silence("job", "vit");
  without["matchers"] = Json::array();
  EXPECT_THAT(refused(without), HasSubstr("without matchers"));
  Json past = silence("job", "vit");
  past["startsAt"] = "2026-01-02T03:04:05Z";
  past["endsAt"] = "2026-01-02T04:04:05Z";
  EXPECT_THAT(refused(past), HasSubstr("in the past"));
  Json silent = silence("job", "vit");
  silent["comment"] = "";
  EXPECT_THAT(refused(silent), HasSubstr("comment: say why"));
  Json regex = silence("job", "(");
  regex["matchers"][0]["isRegex"] = true;
  EXPECT_THAT(refused(regex), HasSubstr("matchers"));
  Json unknown = silence("job", "vit");
  unknown["id"] = "sil_nobody";
  EXPECT_EQ(ask("POST", "/api/v2/silences", "", unknown.dump()).status, 404);
  EXPECT_EQ(ask("GET", "/api/v2/silence/sil_nobody").status, 404);
  EXPECT_EQ(ask("POST", "/api/v2/silences", "", silence("job", "a").dump(), "").status, 401);
}

TEST_F(ApiTest, EventsAreTakenInEachFormOfCloudEvents) {
  const std::string one =
      R"({"specversion": "1.0", "type": "dev.tocsin.issue.v1", "source": "/probe",
      "id": "1", "data": {"status": "firing", "labels": {"rule": "fan_stopped"}}})";
  EXPECT_EQ(
      ask("POST", "/api/v1/events", "", one, "0123456789-the-shift", "application/cloudevents+json")
          .status,
      202);
  std::string two = one;
  two.replace(two.find("fan_stopped"), 11, "disk_is_full");
  EXPECT_EQ(ask("POST", "/api/v1/events", "", "[" + two + "]", "0123456789-the-shift",
                "application/cloudevents-batch+json")
                .status,
            202);
  const Json list = alerts(2);
  ASSERT_THAT(list, SizeIs(2));
  const auto plain = ask("POST", "/api/v1/events", "", R"({"status": "firing"})");
  EXPECT_EQ(plain.status, 400) << "binary mode without its headers";
}

TEST_F(ApiTest, WhatMayStopARunIsTakenOfAStopperOnly) {
  const std::string event =
      R"({"specversion": "1.0", "type": "dev.tocsin.issue.v1", "source": "/probe", "id": "1",
      "data": {"status": "firing", "labels": {"rule": "fire"},
               "run": {"uid": "9f1c8e2a-0000-4000-8000-000000000001", "attempt": 1}}})";
  const auto refused = ask("POST", "/api/v1/events", "", event, "0123456789-the-shift",
                           "application/cloudevents+json");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.text, HasSubstr("role stopper"));
  const auto taken = ask("POST", "/api/v1/events", "", event, "0123456789-the-guard",
                         "application/cloudevents+json");
  EXPECT_EQ(taken.status, 202) << taken.text;
}

// The page's table is the list of routes, and its roles are the ones that are asked for.
TEST_F(ApiTest, TheDocumentedRolesAreTheOnesThatAreAskedFor) {
  std::ifstream page("docs/http-routes.md");
  std::set<std::string> documented;
  for (std::string line; std::getline(page, line);) {
    std::smatch row;
    if (!std::regex_match(line, row, std::regex(R"(\| `(\w+) (/api/[^`]+)` \| (\w+|–) \|.*)")))
      continue;
    const std::string method = row[1];
    std::string path = row[2];
    documented.insert(method + " " + path);
    path = std::regex_replace(path, std::regex(R"(\{\w+\})"), "x");
    const int nobody = ask(method, path, "", "", "").status;
    EXPECT_EQ(nobody != 401, row[3] == "viewer" || row[3] == "–") << line << nobody;
    const int shift = ask(method, path, "", "{}").status;
    EXPECT_NE(shift, 401) << line;
    EXPECT_EQ(shift == 403, row[3] == "stopper") << line << shift;
    const int guard = ask(method, path, "", "{}", "0123456789-the-guard").status;
    EXPECT_TRUE(guard != 401 && guard != 403) << line << guard;
  }
  std::set<std::string> served;
  for (const HttpRoute& route : api_->routes()) served.insert(route.method + " " + route.path);
  EXPECT_EQ(documented, served);
}

TEST_F(ApiTest, StatusAndReceiversHaveWhatClientsRequire) {
  const Json status = ask("GET", "/api/v2/status").json;
  for (const char* key : {"cluster", "config", "uptime", "versionInfo"})
    EXPECT_TRUE(status.contains(key)) << key;
  EXPECT_EQ(status["cluster"]["status"], "disabled");
  EXPECT_EQ(ask("GET", "/api/v2/receivers").json,
            Json::parse(R"([{"name": "all"}, {"name": "vision"}])"));
}

}  // namespace
}  // namespace tocsin::app
