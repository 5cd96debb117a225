// Acknowledgements and a person's word on stops by /api/v1, over a journal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/fields/stop_request.h"
#include "tests/unit/app/api_fixture.h"

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kGuardToken = "0123456789-the-guard";
constexpr std::string_view kReaderToken = "0123456789-grafana";

class AcksApiTest : public ApiTest {
 protected:
  void write(const std::vector<core::OutRecord>& records) {
    ingest::PublisherOptions options;
    options.writer = "test";
    options.durable = true;
    auto publisher = transport_->publisher(options);
    ASSERT_TRUE(publisher);
    for (const core::OutRecord& record : records) ASSERT_TRUE((*publisher)->publish(record));
    ASSERT_TRUE((*publisher)->flush(std::chrono::seconds(10)));
  }
  Json items_of(const std::string& path, std::size_t wanted) {
    Json out;
    for (int i = 0; i < 500; ++i) {
      out = ask("GET", path).json;
      if (out.contains("items") && out["items"].size() == wanted) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return out["items"];
  }
  std::string one_open_issue() {
    (void)ask("POST", "/api/v2/alerts", "",
              R"([{"labels": {"alertname": "A", "job": "vit"}},
                  {"labels": {"alertname": "B", "job": "vit"}}])");
    for (const Json& one : items_of("/api/v1/issues", 2)) {
      if (one["rule"] == "A") return one["key"];
    }
    return "";
  }
};

TEST_F(AcksApiTest, AnIssueIsTakenOnListedAndTakenBack) {
  const std::string key = one_open_issue();
  ASSERT_FALSE(key.empty());
  const std::string wish = R"({"what": ")" + key + R"(", "note": "looking", "duration": "2h"})";
  EXPECT_EQ(ask("POST", "/api/v1/acks", "", wish, kReaderToken).status, 403);
  const Told made = ask("POST", "/api/v1/acks", "", wish);
  ASSERT_EQ(made.status, 202) << made.text;
  EXPECT_EQ(made.json["matching"], Json::array({key}));
  const Json ack = made.json["ack"];
  EXPECT_EQ(ack["by"], "shift");
  EXPECT_EQ(ack["origin"], "api");
  EXPECT_EQ(ack["note"], "looking");
  EXPECT_TRUE(ack["until"].is_string());
  const Json listed = ask("GET", "/api/v1/acks", "", "", kReaderToken).json["items"];
  ASSERT_THAT(listed, SizeIs(1)) << "it holds at once";
  EXPECT_EQ(listed[0]["id"], ack["id"]);
  EXPECT_EQ(listed[0]["holds"], true);
  const std::string path = "/api/v1/acks/" + std::string(ack["id"]);
  EXPECT_EQ(ask("DELETE", path, "", "", kReaderToken).status, 403);
  EXPECT_EQ(ask("DELETE", path).status, 204);
  EXPECT_THAT(ask("GET", "/api/v1/acks").json["items"], SizeIs(0));
  EXPECT_EQ(ask("DELETE", path).status, 404);
  std::vector<std::string> changes;
  for (const Json& one : items_of("/api/v1/audit", 3)) changes.push_back(one["what"]);
  EXPECT_THAT(changes, ::testing::ElementsAre("ack.ended", "ack.set", "issues.posted"));
}

TEST_F(AcksApiTest, WhatIsWrongIsNamed) {
  (void)one_open_issue();
  const auto detail = [&](const std::string& body, int status) {
    const Told told = ask("POST", "/api/v1/acks", "", body);
    EXPECT_EQ(told.status, status) << body << told.text;
    return told.json.value("detail", "");
  };
  EXPECT_THAT(detail(R"({"what": "x"})", 400), HasSubstr("note: expected a text"));
  EXPECT_THAT(detail(R"({"what": "x", "notes": "y"})", 400), HasSubstr("did you mean \"note\""));
  EXPECT_THAT(detail(R"({"what": "x", "note": "y", "duration": "-1h"})", 400),
              HasSubstr("duration"));
  EXPECT_THAT(detail(R"({"what": "x", "note": "y", "until": "2001-01-01T00:00:00Z"})", 400),
              HasSubstr("a time to come"));
  EXPECT_THAT(detail(R"({"what": "ntf_nothing", "note": "y"})", 404),
              HasSubstr("nothing open has ID ntf_nothing"));
}

TEST_F(AcksApiTest, OnlyAStopperDecidesAStopAndOnlyOnce) {
  core::StopRequest request;
  request.id = "cmd_76sjzs23ut";
  request.run.uid = core::run_uid_for("digits", "one");
  request.run.attempt = 1;
  request.run.job = "digits";
  request.reason.summary = "loss is NaN";
  request.terms = core::ValueMap{};
  request.asked_at = clock_.now();
  request.until = clock_.now() + std::chrono::hours(1);
  core::StopRequest second = request;
  second.id = "cmd_second";
  write({core::stop_request_record(request), core::stop_request_record(second)});
  const Json listed = items_of("/api/v1/stops", 2);
  ASSERT_THAT(listed, SizeIs(2));
  EXPECT_EQ(listed[0]["state"], "awaiting_approval");
  const std::string approve = "/api/v1/stops/cmd_76sj/approve";
  EXPECT_EQ(ask("POST", approve).status, 403) << "an operator may not";
  const Told done = ask("POST", approve, "", R"({"comment": "yes"})", kGuardToken);
  ASSERT_EQ(done.status, 202) << done.text;
  EXPECT_EQ(done.json["state"], "approved");
  EXPECT_EQ(items_of("/api/v1/stops", 2)[0]["approval"].is_object(), true);
  Json now;
  for (int i = 0; i < 500; ++i) {
    now = ask("GET", "/api/v1/stops", "all=true").json["items"];
    const bool read = std::any_of(now.begin(), now.end(),
                                  [](const Json& one) { return one["state"] == "approved"; });
    if (read) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const Json& one : now) {
    if (one["command_id"] != "cmd_76sjzs23ut") continue;
    EXPECT_EQ(one["state"], "approved");
    EXPECT_EQ(one["approval"]["decided_by"], "guard");
    EXPECT_EQ(one["approval"]["comment"], "yes");
  }
  EXPECT_EQ(ask("POST", approve, "", "", kGuardToken).status, 409) << "it has had its word";
  EXPECT_EQ(ask("POST", "/api/v1/stops/cmd_second/cancel", "", "", kGuardToken).json["state"],
            "cancelled");
  EXPECT_EQ(ask("POST", "/api/v1/stops/cmd_none/cancel", "", "", kGuardToken).status, 404);
  EXPECT_EQ(ask("POST", approve, "", R"({"commnt": "x"})", kGuardToken).status, 400);
}

}  // namespace
}  // namespace tocsin::app
