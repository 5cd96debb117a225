// The API's own resources over a journal: lists, silences, sessions, changes, its description.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>

#include "tests/unit/app/api_fixture.h"

namespace tocsin::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class ApiV1Test : public ApiTest {
 protected:
  // A list is read back from the topic, which takes a moment.
  Json items(const std::string& path, std::size_t wanted, std::string_view query = "") {
    Json out;
    for (int i = 0; i < 500; ++i) {
      out = ask("GET", path, query).json;
      if (out.is_object() && out.contains("items") && out["items"].size() == wanted) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return out.is_object() && out.contains("items") ? out["items"] : out;
  }
  void post_alerts(const std::string& alerts) {
    const auto posted = ask("POST", "/api/v2/alerts", "", alerts);
    ASSERT_EQ(posted.status, 200) << posted.text;
  }
};

TEST_F(ApiV1Test, IssuesAreListedAndNarrowed) {
  post_alerts(R"([
    {"labels": {"alertname": "A", "severity": "critical", "job": "vit"},
     "annotations": {"summary": "it burns"}, "startsAt": "2026-01-02T03:04:05Z"},
    {"labels": {"alertname": "B", "job": "bert"}, "startsAt": "2026-01-02T04:04:05Z"}])");
  const Json list = items("/api/v1/issues", 2);
  ASSERT_THAT(list, SizeIs(2));
  EXPECT_EQ(list[0]["rule"], "B") << "the newest first";
  EXPECT_EQ(list[1]["summary"], "it burns");
  EXPECT_EQ(list[1]["status"], "firing");
  EXPECT_EQ(list[1]["starts_at"], "2026-01-02T03:04:05.000Z");
  EXPECT_EQ(list[1]["episode"], nullptr) << "nobody was told of it";
  EXPECT_EQ(items("/api/v1/issues", 1, "rule=A")[0]["rule"], "A");
  EXPECT_EQ(items("/api/v1/issues", 1, "severity=critical")[0]["rule"], "A");
  EXPECT_EQ(items("/api/v1/issues", 1, "filter=job%3D%22bert%22")[0]["rule"], "B");
  EXPECT_THAT(items("/api/v1/issues", 0, "status=resolved"), IsEmpty());
  EXPECT_EQ(items("/api/v1/issues", 1, "to=2026-01-02T03:30:00Z")[0]["rule"], "A");
  EXPECT_THAT(items("/api/v1/issues", 2, "from=2026-01-02T03:30:00Z"), SizeIs(2))
      << "A still goes on then";
}

TEST_F(ApiV1Test, PagesFollowOneAnother) {
  std::string alerts;
  for (int i = 0; i < 7; ++i) {
    alerts += (i == 0 ? "[" : ",") + std::string(R"({"labels": {"alertname": "N)") +
              std::to_string(i) + R"("}, "startsAt": "2026-01-02T03:04:0)" + std::to_string(i / 2) +
              R"(Z"})";
  }
  post_alerts(alerts + "]");
  items("/api/v1/issues", 7);
  std::vector<std::string> seen;
  std::string query = "limit=3";
  for (int page = 0; page < 4; ++page) {
    const auto told = ask("GET", "/api/v1/issues", query);
    ASSERT_EQ(told.status, 200) << told.text;
    for (const Json& one : told.json["items"]) seen.push_back(one["rule"]);
    if (told.json["next"].is_null()) break;
    const std::string link = told.header("Link");
    ASSERT_THAT(link, StartsWith("</api/v1/issues?limit=3&cursor="));
    ASSERT_THAT(link, HasSubstr(">; rel=\"next\""));
    query = link.substr(16, link.find('>') - 16);
  }
  EXPECT_THAT(seen, SizeIs(7));
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 7U) << "each once";
  EXPECT_EQ(seen.front(), "N6");
  const auto bad = ask("GET", "/api/v1/issues", "cursor=yesterday");
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.json["field"], "cursor");
}

TEST_F(ApiV1Test, AWrongParameterIsNamedWithTheNearest) {
  const auto unknown = ask("GET", "/api/v1/issues", "severty=error");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.json["field"], "severty");
  EXPECT_THAT(unknown.text, HasSubstr("did you mean \\\"severity\\\"?"));
  const auto choice = ask("GET", "/api/v1/issues", "severity=eror");
  EXPECT_THAT(choice.text, HasSubstr("did you mean \\\"error\\\"?"));
  EXPECT_EQ(choice.json["field"], "severity");
  EXPECT_THAT(ask("GET", "/api/v1/issues", "limit=1001").text, HasSubstr("from 1 to 1000"));
  EXPECT_THAT(ask("GET", "/api/v1/issues", "limit=0").text, HasSubstr("from 1 to 1000"));
  EXPECT_THAT(ask("GET", "/api/v1/issues", "from=yesterday").text, HasSubstr("expected a time"));
  EXPECT_THAT(ask("GET", "/api/v1/issues", "limit=1&limit=2").text, HasSubstr("may stand once"));
  EXPECT_EQ(ask("GET", "/api/v1/nothing").status, 404);
  EXPECT_EQ(ask("GET", "/api/v1/nothing").json["status"], 404);
  const auto method = ask("PUT", "/api/v1/silences", "", "{}");
  EXPECT_EQ(method.status, 405);
  EXPECT_THAT(method.header("Allow"), HasSubstr("POST"));
}

TEST_F(ApiV1Test, OneIssueIsShownByItsKeyAndEpisode) {
  post_alerts(R"([{"labels": {"alertname": "A"}}])");
  const std::string key = items("/api/v1/issues", 1)[0]["key"];
  const auto shown = ask("GET", "/api/v1/issues/" + key + "/newest");
  ASSERT_EQ(shown.status, 200) << shown.text;
  EXPECT_EQ(shown.json["issue"]["rule"], "A");
  EXPECT_THAT(shown.json["deliveries"], IsEmpty());
  EXPECT_EQ(ask("GET", "/api/v1/issues/" + key + "/7").status, 404);
  EXPECT_EQ(ask("GET", "/api/v1/issues/nobody/newest").status, 404);
}

TEST_F(ApiV1Test, WhoWasToldAndWhichEpisodeItWas) {
  post_alerts(R"([{"labels": {"alertname": "A"}}])");
  const Json issue = items("/api/v1/issues", 1)[0];
  core::Delivery delivery;
  delivery.notification_id = "ntf_1";
  delivery.integration = "v";
  delivery.type = "publish_metric";
  delivery.state = core::DeliveryState::delivered;
  delivery.issues = {{issue["key"], 4, issue["event_id"]}};
  ingest::PublisherOptions options;
  options.writer = "test";
  options.durable = true;
  auto publisher = transport_->publisher(options);
  ASSERT_TRUE(publisher);
  ASSERT_TRUE((*publisher)->publish(ingest::encode_delivery(delivery, clock_.now(), "default")));
  ASSERT_TRUE((*publisher)->flush(std::chrono::seconds(5)));
  const Json told = items("/api/v1/deliveries", 1, "integration=v&state=delivered");
  ASSERT_THAT(told, SizeIs(1)) << told;
  EXPECT_EQ(told[0]["issues"][0]["episode"], 4);
  EXPECT_EQ(ask("GET", "/api/v1/deliveries").json["complete_since"], nullptr);
  EXPECT_THAT(items("/api/v1/deliveries", 0, "integration=other"), IsEmpty());
  EXPECT_THAT(items("/api/v1/deliveries", 1, "issue=" + issue["key"].get<std::string>()),
              SizeIs(1));
  EXPECT_EQ(items("/api/v1/issues", 1)[0]["episode"], 4);
  const auto shown = ask("GET", "/api/v1/issues/" + issue["key"].get<std::string>() + "/4");
  ASSERT_EQ(shown.status, 200) << shown.text;
  EXPECT_EQ(shown.json["deliveries"][0]["notification_id"], "ntf_1");
}

TEST_F(ApiV1Test, ASilenceIsPreviewedBegunAndEnded) {
  post_alerts(R"([{"labels": {"alertname": "A", "job": "vit"}}, {"labels": {"alertname": "B"}}])");
  items("/api/v1/issues", 2);
  const std::string body = R"({"matchers": "{job=\"vit\"}", "duration": "2h", "comment": "known"})";
  const auto preview = ask("POST", "/api/v1/silences", "preview=true", body);
  ASSERT_EQ(preview.status, 200) << preview.text;
  EXPECT_EQ(preview.json["matching_count"], 1);
  EXPECT_EQ(preview.json["matching"][0]["rule"], "A");
  EXPECT_THAT(ask("GET", "/api/v1/silences").json["items"], IsEmpty()) << "nothing is written";
  EXPECT_EQ(ask("GET", "/api/v1/audit").json["items"].size(), 1U) << "the alerts alone";
  const auto made = ask("POST", "/api/v1/silences", "", body);
  ASSERT_EQ(made.status, 202) << made.text;
  const std::string id = made.json["silence"]["id"];
  EXPECT_EQ(made.json["silence"]["created_by"], "shift") << "who asks, whatever he says";
  EXPECT_EQ(items("/api/v1/issues", 1, "rule=A")[0]["silenced_by"], Json::array({id}));
  EXPECT_THAT(items("/api/v1/issues", 1, "rule=B")[0]["silenced_by"], IsEmpty());
  EXPECT_EQ(items("/api/v1/silences", 1, "state=active")[0]["matchers"], "{job=\"vit\"}");
  EXPECT_EQ(ask("DELETE", "/api/v1/silences/" + id).status, 204);
  EXPECT_EQ(items("/api/v1/silences", 1, "state=expired")[0]["id"], id);
  EXPECT_EQ(ask("DELETE", "/api/v1/silences/nobody").status, 404);
}

TEST_F(ApiV1Test, ASilenceThatIsNoneSaysWhichField) {
  const auto refused = [&](const std::string& body) {
    const auto told = ask("POST", "/api/v1/silences", "", body);
    EXPECT_EQ(told.status, 400) << body;
    return told.text;
  };
  EXPECT_THAT(refused(R"({"matchers": "job=\"a\"", "duration": "2h"})"), HasSubstr("comment"));
  EXPECT_THAT(refused(R"({"matchers": "job=\"a\"", "comment": "x"})"),
              HasSubstr("one of ends_at and duration"));
  EXPECT_THAT(refused(R"({"matchers": "job=\"a\"", "comment": "x", "duration": "2 moons"})"),
              HasSubstr("duration: expected"));
  EXPECT_THAT(refused(R"({"matcher": "job=\"a\"", "comment": "x", "duration": "2h"})"),
              HasSubstr("did you mean \\\"matchers\\\"?"));
  EXPECT_THAT(refused(R"({"matchers": 7, "comment": "x", "duration": "2h"})"),
              HasSubstr("matchers: expected"));
  EXPECT_THAT(
      refused(R"({"matchers": "job=\"a\"", "comment": "x", "ends_at": "2020-01-02T03:04:05Z",
                          "starts_at": "2020-01-01T03:04:05Z"})"),
      HasSubstr("in the past"));
  EXPECT_THAT(refused("[]"), HasSubstr("expected an object"));
}

TEST_F(ApiV1Test, EveryChangeIsWrittenWithWhoAndWhat) {
  post_alerts(R"([{"labels": {"alertname": "A"}}])");
  const std::string body = R"({"matchers": "rule=\"A\"", "duration": "2h", "comment": "known"})";
  const std::string id = ask("POST", "/api/v1/silences", "", body).json["silence"]["id"];
  ask("DELETE", "/api/v2/silence/" + id, "", "", "0123456789-the-guard");
  const Json list = items("/api/v1/audit", 3);
  ASSERT_THAT(list, SizeIs(3)) << list;
  EXPECT_EQ(list[0]["what"], "silence.ended");
  EXPECT_EQ(list[0]["who"], "guard");
  EXPECT_EQ(list[0]["role"], "stopper");
  EXPECT_EQ(list[0]["by"], "token");
  EXPECT_EQ(list[0]["source"], "127.0.0.1");
  EXPECT_EQ(list[0]["subject"], id);
  EXPECT_EQ(list[0]["before"]["comment"], "known");
  EXPECT_LT(list[0]["after"]["ends_at"], list[0]["before"]["ends_at"]);
  EXPECT_EQ(list[1]["what"], "silence.set");
  EXPECT_EQ(list[1]["before"], nullptr);
  EXPECT_EQ(list[2]["what"], "issues.posted");
  EXPECT_EQ(list[2]["after"]["issues"][0]["rule"], "A");
  EXPECT_EQ(items("/api/v1/audit", 1, "who=guard")[0]["what"], "silence.ended");
  EXPECT_EQ(ask("GET", "/api/v1/audit", "", "", "0123456789-grafana").status, 403);
  EXPECT_EQ(ask("GET", "/api/v1/audit", "", "", "").status, 401);
  for (const char* token : {"0123456789-the-shift", "0123456789-the-guard"})
    EXPECT_THAT(list.dump(), Not(HasSubstr(token)));
}

TEST_F(ApiV1Test, TheSameIdempotencyKeyActsOnce) {
  const std::string body = R"({"matchers": "rule=\"A\"", "duration": "2h", "comment": "known"})";
  const auto with_key = [&](const std::string& key, const std::string& sent) {
    return ask("POST", "/api/v1/silences", "", sent, "0123456789-the-shift", "application/json",
               {{"Idempotency-Key", key}});
  };
  const auto first = with_key("dialog-1", body);
  const auto again = with_key("dialog-1", body);
  ASSERT_EQ(first.status, 202);
  EXPECT_EQ(again.status, 202);
  EXPECT_EQ(again.text, first.text);
  EXPECT_EQ(again.header("Idempotent-Replayed"), "true");
  EXPECT_THAT(items("/api/v1/silences", 1), SizeIs(1));
  EXPECT_EQ(with_key("dialog-1", R"({"matchers": "rule=\"B\""})").status, 422);
  EXPECT_EQ(with_key("dialog-2", body).header("Idempotent-Replayed"), "");
  EXPECT_EQ(with_key(std::string(300, 'x'), body).status, 400);
}

TEST_F(ApiV1Test, ASessionIsBegunUsedAndEnded) {
  const auto status = ask("GET", "/api/v1/status", "", "", "").json;
  EXPECT_EQ(status["auth"], "loopback");
  EXPECT_EQ(status["who"]["name"], "local");
  EXPECT_EQ(status["csrf"], nullptr);
  EXPECT_EQ(ask("POST", "/api/v1/session", "", R"({"token": "0123456789-nobodys"})", "").status,
            401);
  const auto begun = ask("POST", "/api/v1/session", "", R"({"token": "0123456789-the-shift"})", "");
  ASSERT_EQ(begun.status, 200) << begun.text;
  const std::string set = begun.header("Set-Cookie");
  EXPECT_THAT(set, HasSubstr("; HttpOnly; SameSite=Strict; Max-Age=43200"));
  EXPECT_THAT(set, Not(HasSubstr("Secure"))) << "in clear a browser would not send it back";
  const std::string cookie = set.substr(0, set.find(';'));
  EXPECT_GE(cookie.size(), std::string("tocsin_session=").size() + 52) << "256 bits in base32";
  const auto as_browser = [&](std::string_view method, std::string_view path,
                              const std::string& body, const std::string& csrf) {
    std::vector<std::pair<std::string, std::string>> headers{{"Cookie", "a=b; " + cookie}};
    if (!csrf.empty()) headers.emplace_back("X-Tocsin-CSRF", csrf);
    return ask(method, path, "", body, "", "application/json", headers);
  };
  const auto me = as_browser("GET", "/api/v1/status", "", "").json;
  EXPECT_EQ(me["who"]["name"], "shift");
  EXPECT_EQ(me["who"]["by"], "session");
  const std::string csrf = me["csrf"];
  EXPECT_EQ(csrf, begun.json["csrf"]);
  const std::string body = R"({"matchers": "rule=\"A\"", "duration": "2h", "comment": "known"})";
  EXPECT_EQ(as_browser("POST", "/api/v1/silences", body, "").status, 403);
  EXPECT_EQ(as_browser("POST", "/api/v1/silences", body, "guessed").status, 403);
  EXPECT_EQ(as_browser("POST", "/api/v1/silences", body, csrf).status, 202);
  EXPECT_EQ(as_browser("DELETE", "/api/v1/session", "", "").status, 403);
  EXPECT_EQ(as_browser("DELETE", "/api/v1/session", "", csrf).status, 204);
  EXPECT_EQ(as_browser("POST", "/api/v1/silences", body, csrf).status, 401);
}

TEST_F(ApiV1Test, WrongTokensAreSlowedDown) {
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(ask("POST", "/api/v1/session", "", R"({"token": "wrong"})", "").status, 401);
  const auto slowed =
      ask("POST", "/api/v1/session", "", R"({"token": "0123456789-the-shift"})", "");
  EXPECT_EQ(slowed.status, 429);
  EXPECT_GT(std::stoi(slowed.header("Retry-After")), 0);
}

TEST_F(ApiV1Test, AStreamTellsWhatHappens) {
  const auto opened = ask("GET", "/api/v1/stream", "types=issue,silence");
  ASSERT_EQ(opened.status, 200) << opened.text;
  ASSERT_TRUE(opened.stream);
  EXPECT_EQ(opened.header("X-Accel-Buffering"), "no");
  EXPECT_THAT(opened.stream->take().text, StartsWith("retry: 2000\nid: "));
  ask("GET", "/api/v1/issues");  // waits until the topics are read
  post_alerts(R"([{"labels": {"alertname": "A"}}])");
  std::string heard;
  for (int i = 0; i < 500 && heard.empty(); ++i) {
    heard = opened.stream->take().text;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_THAT(heard, HasSubstr("event: issue\ndata: {\"key\":\""));
  ask("POST", "/api/v1/silences", "",
      R"({"matchers": "rule=\"A\"", "duration": "2h", "comment": "known"})");
  heard = opened.stream->take().text;
  EXPECT_THAT(heard, HasSubstr("event: silence\ndata: {\"id\":\"sil_"));
  EXPECT_EQ(ask("GET", "/api/v1/stream", "types=isue").status, 400);
  EXPECT_EQ(ask("GET", "/api/v1/stream", "run=seven").status, 400);
}

TEST_F(ApiV1Test, OneAddressHasAShareOfTheStreams) {
  std::vector<std::shared_ptr<HttpStream>> streams;
  for (int i = 0; i < 16; ++i) streams.push_back(ask("GET", "/api/v1/stream").stream);
  const auto more = ask("GET", "/api/v1/stream");
  EXPECT_EQ(more.status, 429);
  EXPECT_EQ(more.header("Retry-After"), "10");
  streams.pop_back();
  EXPECT_EQ(ask("GET", "/api/v1/stream").status, 200);
}

TEST_F(ApiV1Test, ALongAnswerIsCompressedForWhoTakesIt) {
  const auto plain = ask("GET", "/api/v1/openapi.json");
  const auto small = ask("GET", "/api/v1/openapi.json", "", "", "", "application/json",
                         {{"Accept-Encoding", "br, gzip;q=0.5"}});
  EXPECT_EQ(small.header("Content-Encoding"), "gzip");
  EXPECT_LT(small.text.size(), plain.text.size() / 3);
  EXPECT_EQ(small.text.substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(ask("GET", "/api/v1/openapi.json", "", "", "", "application/json",
                {{"Accept-Encoding", "gzip;q=0"}})
                .header("Content-Encoding"),
            "");
  EXPECT_EQ(
      ask("GET", "/api/v1/status", "", "", "", "application/json", {{"Accept-Encoding", "gzip"}})
          .header("Content-Encoding"),
      "")
      << "it is too short";
}

// The page's table and OpenAPI are of the same declarations.
TEST_F(ApiV1Test, TheTableOfRoutesIsTheOneInTheDocumentation) {
  const Json described = ask("GET", "/api/v1/openapi.json").json;
  std::ifstream page("docs/http-routes.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  for (const auto& [path, methods] : described["paths"].items()) {
    for (const auto& [method, route] : methods.items()) {
      std::string names;
      for (const Json& parameter : route["parameters"]) {
        if (parameter["in"] != "query" ||
            parameter["description"].get<std::string>().find("no effect") != std::string::npos)
          continue;
        names += (names.empty() ? "`" : ", `") + parameter["name"].get<std::string>() + "`";
      }
      std::string upper = method;
      for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      const std::string role = route["x-tocsin-role"];
      const std::string row = "| `" + upper + " " + path + "` | " +
                              (role == "anybody" ? "–" : role) + " | " +
                              route["summary"].get<std::string>() + " | " + names + " |\n";
      EXPECT_THAT(text, HasSubstr(row));
    }
  }
}

}  // namespace
}  // namespace tocsin::app
