// Who may ask the API for what.
#include "app/serve/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/serve/url_query.h"

namespace tocsin::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kOperators = "0123456789abcdef-operators";

AccessConfig with_tokens() {
  AccessConfig out;
  out.hosts = {"tocsin.example"};
  out.tokens = {{"grafana", ApiRole::viewer, config::Secret::from_value("0123456789abcdef-viewer")},
                {"night shift", ApiRole::operate, config::Secret::from_value(kOperators)},
                {"careless", ApiRole::admin, config::Secret::from_value("short")}};
  return out;
}

struct Asked {
  std::string method = "GET";
  std::string host = "127.0.0.1:9760";
  std::string token;
  std::string origin;
  std::string body;
  std::string type = "application/json";
  std::string client = "127.0.0.1";
};
// { method, host, token, origin }
Asked asked_with(const std::string& method, const std::string& host, const std::string& token = "",
                 const std::string& origin = "") {
  Asked out;
  out.method = method;
  out.host = host;
  out.token = token;
  out.origin = origin;
  return out;
}
Asked with_token(const std::string& method, const std::string& token) {
  return asked_with(method, "127.0.0.1:9760", token);
}

Access::Verdict verdict(const Access& access, const Asked& asked,
                        ApiRole needed = ApiRole::viewer) {
  HttpRequest request{asked.method, "/api/v2/alerts", "", asked.body, asked.client};
  const std::string authorization = "Bearer " + asked.token;
  request.headers.emplace_back("HOST", asked.host);
  if (!asked.token.empty()) request.headers.emplace_back("Authorization", authorization);
  if (!asked.origin.empty()) request.headers.emplace_back("Origin", asked.origin);
  request.headers.emplace_back("content-type", asked.type);
  return access.check(request, needed);
}

int status_of(const Access::Verdict& verdict) {
  return verdict.refusal ? verdict.refusal->status : 200;
}

TEST(Access, OnThisMachineEverybodyReadsAndNobodyWritesWithoutAToken) {
  const Access access(with_tokens(), "127.0.0.1:9760", "");
  EXPECT_EQ(status_of(verdict(access, {})), 200);
  EXPECT_EQ(verdict(access, {}).who.name, "local");
  const auto refused = verdict(access, with_token("POST", ""), ApiRole::operate);
  EXPECT_EQ(status_of(refused), 401);
  EXPECT_THAT(refused.refusal->body, HasSubstr("role is at least operator"));
  EXPECT_EQ(refused.refusal->headers.front().first, "WWW-Authenticate");
  EXPECT_EQ(refused.refusal->content_type, "application/problem+json");
}

TEST(Access, BeyondThisMachineReadingNeedsATokenToo) {
  const Access wide(with_tokens(), "0.0.0.0:9760", "");
  EXPECT_EQ(status_of(verdict(wide, {})), 401) << "a proxy on this machine speaks for anybody";
  EXPECT_EQ(status_of(verdict(wide, with_token("GET", "0123456789abcdef-viewer"))), 200);
  AccessConfig closed = with_tokens();
  closed.read = "token";
  EXPECT_EQ(status_of(verdict(Access(closed, "127.0.0.1:9760", ""), {})), 401);
}

TEST(Access, ATokenMayWhatItsRoleMay) {
  const Access access(with_tokens(), "127.0.0.1:9760", "");
  const auto shift = verdict(access, with_token("DELETE", kOperators), ApiRole::operate);
  EXPECT_EQ(status_of(shift), 200);
  EXPECT_EQ(shift.who.name, "night shift");
  const auto more = verdict(access, with_token("POST", kOperators), ApiRole::stopper);
  EXPECT_EQ(status_of(more), 403);
  EXPECT_THAT(more.refusal->body,
              HasSubstr("night shift has the role operator; this needs stopper"));
  EXPECT_EQ(status_of(verdict(access, with_token("GET", "0123456789abcdef-nobody"))), 401);
  EXPECT_EQ(status_of(verdict(access, with_token("GET", "short"))), 401)
      << "too short to be a secret";
}

TEST(Access, ATokenThatOpensNothingIsNamed) {
  AccessConfig config = with_tokens();
  config.tokens.push_back({"gone", ApiRole::viewer, config::Secret::from_file("/nowhere/token")});
  const auto unusable = Access(config, "127.0.0.1:9760", "").unusable_tokens();
  ASSERT_EQ(unusable.size(), 2U);
  EXPECT_EQ(unusable[0], "the token careless opens nothing: it has fewer than 16 characters");
  EXPECT_THAT(unusable[1], HasSubstr("the token gone opens nothing: "));
  EXPECT_THAT(unusable[1], HasSubstr("/nowhere/token"));
}

TEST(Access, AForeignNameOfThisMachineIsRefused) {
  const Access access(with_tokens(), "127.0.0.1:9760", "https://alarms.example:8443/tocsin");
  for (const char* ours : {"localhost:9760", "[::1]:9760", "127.0.0.1", "tocsin.example",
                           "10.0.0.7:1", "alarms.example"}) {
    EXPECT_EQ(status_of(verdict(access, asked_with("GET", ours))), 200) << ours;
  }
  for (const char* foreign :
       {"evil.example", "", "localhost.evil.example", "127.0.0.1.evil.example"}) {
    EXPECT_EQ(status_of(verdict(access, asked_with("GET", foreign))), 421) << foreign;
  }
}

TEST(Access, APageOfAnotherSiteIsRefused) {
  const Access access(with_tokens(), "127.0.0.1:9760", "");
  EXPECT_EQ(
      status_of(verdict(access, asked_with("GET", "127.0.0.1:9760", "", "http://evil.example"))),
      403);
  EXPECT_EQ(status_of(verdict(access, asked_with("GET", "127.0.0.1:9760", "", "null"))), 403);
  EXPECT_EQ(
      status_of(verdict(access, asked_with("GET", "localhost:9760", "", "http://localhost:9760"))),
      200);
  Asked form = with_token("POST", kOperators);
  form.body = "a=1";
  form.type = "application/x-www-form-urlencoded";
  EXPECT_EQ(status_of(verdict(access, form, ApiRole::operate)), 415) << "what a form can send";
}

TEST(UrlQuery, DecodesAndKeepsWhatStandsSeveralTimes) {
  const auto query = UrlQuery::parse("filter=a%3D%22b%22&filter=c+d&x&=&active=false");
  ASSERT_TRUE(query);
  EXPECT_THAT(query->values("filter"), ElementsAre("a=\"b\"", "c d"));
  EXPECT_EQ(query->value("filter"), "c d");
  EXPECT_EQ(query->value("x"), "");
  EXPECT_FALSE(query->value("y").has_value());
  EXPECT_EQ(*query->flag("active", true), false);
  EXPECT_EQ(*query->flag("y", true), true);
  EXPECT_FALSE(query->flag("filter", true));
}

TEST(UrlQuery, RefusesAWrongEscapeAndNamesTheNearestParameter) {
  for (const char* bad : {"a=%", "a=%4", "a=%zz", "%q=1"})
    EXPECT_FALSE(UrlQuery::parse(bad)) << bad;
  constexpr std::array<std::string_view, 2> kKnown{"filter", "receiver"};
  const auto wrong = UrlQuery::parse("fliter=1")->only(kKnown);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("did you mean \"filter\"?"));
}

}  // namespace
}  // namespace tocsin::app
