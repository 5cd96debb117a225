// Sessions, CSRF and a proxy that says who asks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/serve/access.h"
#include "core/identity.h"

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using RequestHeaders = std::vector<std::pair<std::string, std::string>>;

class HandClock final : public core::Clock {
 public:
  [[nodiscard]] core::WallTime now() const override { return core::wall_time(steady.count()); }
  [[nodiscard]] core::Duration monotonic() const override { return steady; }
  core::Duration steady = std::chrono::hours(1);
};

class SessionAccess : public ::testing::Test {
 protected:
  SessionAccess() {
    config_.hosts = {"alarms.example"};
    config_.tokens = {
        {"shift", ApiRole::operate, config::Secret::from_value("0123456789-the-shift")}};
  }
  void behind_proxy(const char* secret = "0123456789-of-the-proxy") {
    ProxyAccess proxy;
    proxy.trusted = {"10.0.0.0/30", "fd00::7"};
    if (secret != nullptr) proxy.secret = config::Secret::from_value(secret);
    proxy.roles = {{"ml-oncall", ApiRole::operate}, {"leads", ApiRole::stopper}};
    config_.proxy = std::move(proxy);
  }
  Access::Verdict check(const std::string& method, const RequestHeaders& headers,
                        ApiRole needed = ApiRole::viewer, const std::string& client = "127.0.0.1",
                        const std::string& listen = "127.0.0.1:9760",
                        std::string_view certificate = "", bool secure = false) {
    const Access access(config_, listen, "", &sessions_);
    HttpRequest request{method, "/api/v1/x", "", "", client};
    request.certificate = certificate;
    request.secure = secure;
    request.headers.emplace_back("Host", "alarms.example");
    for (const auto& [name, value] : headers) request.headers.emplace_back(name, value);
    return access.check(request, needed);
  }
  static int status(const Access::Verdict& verdict) {
    return verdict.refusal ? verdict.refusal->status : 200;
  }
  std::string begin() { return sessions_.open(core::sha256("0123456789-the-shift")); }
  static RequestHeaders with(const std::string& cookie, const std::string& csrf = "") {
    RequestHeaders out{{"Cookie", "tocsin_session=" + cookie}};
    if (!csrf.empty()) out.emplace_back("X-Tocsin-CSRF", csrf);
    return out;
  }
  static RequestHeaders as(const std::string& user, const std::string& groups,
                           const std::string& secret = "0123456789-of-the-proxy") {
    return {{"X-Forwarded-User", user},
            {"X-Forwarded-Groups", groups},
            {"X-Tocsin-Proxy-Secret", secret}};
  }

  HandClock clock_;
  SessionTable sessions_{clock_};
  AccessConfig config_;
};

TEST_F(SessionAccess, ASessionEndsAfterTwelveHoursAndWithItsToken) {
  const std::string cookie = begin();
  EXPECT_EQ(check("GET", with(cookie)).who.name, "shift");
  clock_.steady += std::chrono::hours(11);
  EXPECT_EQ(check("GET", with(cookie)).who.by, KnownBy::session);
  config_.tokens[0].token = config::Secret::from_value("0123456789-another-one");
  EXPECT_EQ(check("GET", with(cookie)).who.by, KnownBy::machine) << "the token is another one now";
  config_.tokens[0].token = config::Secret::from_value("0123456789-the-shift");
  clock_.steady += std::chrono::hours(1);
  EXPECT_EQ(check("GET", with(cookie)).who.by, KnownBy::machine);
  EXPECT_THAT(check("POST", with(cookie), ApiRole::operate).refusal->body,
              HasSubstr("the session is over"));
}

TEST_F(SessionAccess, OnlyAClosedSessionIsClosed) {
  const std::string first = begin();
  const std::string second = begin();
  EXPECT_NE(first, second);
  sessions_.close(first);
  EXPECT_FALSE(sessions_.token_of(first));
  EXPECT_TRUE(sessions_.token_of(second));
  EXPECT_FALSE(sessions_.token_of(""));
}

TEST_F(SessionAccess, SessionsAreBounded) {
  const std::string oldest = begin();
  clock_.steady += std::chrono::seconds(1);
  std::string newest;
  for (std::size_t i = 0; i < SessionTable::kMost; ++i) newest = begin();
  EXPECT_FALSE(sessions_.token_of(oldest));
  EXPECT_TRUE(sessions_.token_of(newest));
}

TEST_F(SessionAccess, AChangeOfASessionNeedsItsOwnWord) {
  const std::string mine = begin();
  const std::string others = begin();
  const std::string csrf = check("GET", with(mine)).who.csrf;
  EXPECT_EQ(status(check("POST", with(mine), ApiRole::operate)), 403);
  EXPECT_EQ(
      status(check("DELETE", with(mine, check("GET", with(others)).who.csrf), ApiRole::operate)),
      403);
  EXPECT_EQ(status(check("DELETE", with(mine, csrf), ApiRole::operate)), 200);
  EXPECT_NE(csrf, SessionTable(clock_).csrf_token("session:" + mine)) << "of this process";
}

TEST_F(SessionAccess, ATokenNeedsNoWordAndOpensNoSession) {
  const RequestHeaders bearer{{"Authorization", "Bearer 0123456789-the-shift"}};
  EXPECT_EQ(status(check("POST", bearer, ApiRole::operate)), 200);
  EXPECT_EQ(check("POST", bearer, ApiRole::operate).who.csrf, "");
}

TEST_F(SessionAccess, OverTlsTheCookieIsBoundToThisHost) {
  EXPECT_THAT(Access::cookie_header("abc", true), StartsWith("__Host-tocsin_session=abc; Path=/"));
  EXPECT_THAT(Access::cookie_header("abc", true), HasSubstr("; Secure"));
  EXPECT_THAT(Access::cookie_header("", false), HasSubstr("Max-Age=0"));
  const std::string cookie = begin();
  const auto over_tls = [&](const std::string& name) {
    return check("GET", {{"Cookie", name + "=" + cookie}}, ApiRole::viewer, "127.0.0.1",
                 "127.0.0.1:9760", "", true)
        .who.by;
  };
  EXPECT_EQ(over_tls("__Host-tocsin_session"), KnownBy::session);
  EXPECT_EQ(over_tls("tocsin_session"), KnownBy::machine);
}

TEST_F(SessionAccess, AnotherPortOfThisMachineIsAnotherSite) {
  const auto from = [&](const std::string& origin) {
    return status(check("GET", {{"Origin", origin}}));
  };
  EXPECT_EQ(from("https://alarms.example"), 200);
  config_.hosts.clear();
  const Access access(config_, "127.0.0.1:9760", "");
  HttpRequest request{"GET", "/", "", "", "127.0.0.1"};
  request.headers = {{"Host", "127.0.0.1:9760"}, {"Origin", "http://127.0.0.1:8888"}};
  EXPECT_EQ(status(access.check(request, ApiRole::viewer)), 403) << "a notebook, for example";
  request.headers[1].second = "http://127.0.0.1:9760";
  EXPECT_EQ(status(access.check(request, ApiRole::viewer)), 200);
}

TEST_F(SessionAccess, AProxySaysWhoAsks) {
  behind_proxy();
  const auto ada =
      check("GET", as("ada@example.org", "staff, ml-oncall,leads"), ApiRole::stopper, "10.0.0.2");
  EXPECT_EQ(status(ada), 200);
  EXPECT_EQ(ada.who.name, "ada@example.org");
  EXPECT_EQ(ada.who.role, ApiRole::stopper) << "the highest of the groups";
  EXPECT_EQ(status(check("GET", as("bob", "ml-oncall"), ApiRole::stopper, "10.0.0.2")), 403);
  const auto eve = check("GET", as("eve", "guests"), ApiRole::viewer, "10.0.0.2");
  EXPECT_EQ(status(eve), 403);
  EXPECT_THAT(eve.refusal->body, HasSubstr("eve is in no group that has a role"));
  EXPECT_EQ(status(check("GET", as("ada", "leads"), ApiRole::viewer, "fd00::7")), 200);
}

TEST_F(SessionAccess, NobodyElseIsTheProxy) {
  behind_proxy();
  EXPECT_EQ(status(check("GET", as("ada", "leads"), ApiRole::viewer, "10.0.0.4")), 401);
  EXPECT_EQ(
      status(check("GET", as("ada", "leads", "guessed-0123456789"), ApiRole::viewer, "10.0.0.2")),
      401);
  EXPECT_EQ(status(check("GET", as("ada", "leads", ""), ApiRole::viewer, "10.0.0.2")), 401);
  EXPECT_EQ(status(check("GET", as("", "leads"), ApiRole::viewer, "10.0.0.2")), 401);
  EXPECT_EQ(status(check("GET", {}, ApiRole::viewer, "127.0.0.1")), 401)
      << "a proxy on this machine would open it to everybody";
  RequestHeaders twice = as("ada", "leads");
  twice.emplace_back("x-forwarded-user", "root");
  EXPECT_EQ(status(check("GET", twice, ApiRole::viewer, "10.0.0.2")), 401)
      << "one of them is the client's";
  const RequestHeaders bearer{{"Authorization", "Bearer 0123456789-the-shift"}};
  EXPECT_EQ(status(check("GET", bearer, ApiRole::viewer, "10.0.0.9")), 200) << "amtool";
}

TEST_F(SessionAccess, AChangeThroughAProxyNeedsAWordToo) {
  behind_proxy();
  RequestHeaders ada = as("ada", "leads");
  EXPECT_EQ(status(check("POST", ada, ApiRole::operate, "10.0.0.2")), 403);
  ada.emplace_back("X-Tocsin-CSRF", check("GET", ada, ApiRole::viewer, "10.0.0.2").who.csrf);
  EXPECT_EQ(status(check("POST", ada, ApiRole::operate, "10.0.0.2")), 200);
  RequestHeaders bob = as("bob", "leads");
  bob.push_back(ada.back());
  EXPECT_EQ(status(check("POST", bob, ApiRole::operate, "10.0.0.2")), 403);
}

TEST_F(SessionAccess, AProxyWithoutASecretShowsACertificate) {
  behind_proxy(nullptr);
  EXPECT_EQ(status(check("GET", as("ada", "leads"), ApiRole::viewer, "10.0.0.2", "127.0.0.1:9760",
                         "proxy")),
            200);
  EXPECT_EQ(status(check("GET", as("ada", "leads"), ApiRole::viewer, "10.0.0.2")), 401);
}

TEST(KeyedHash, IsHmacOfRfc4231) {
  EXPECT_EQ(core::hex(keyed_hash("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(core::hex(keyed_hash(std::string(131, '\xaa'),
                                 "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(NetworksOf, HoldTheirAddressesAlone) {
  const std::vector<std::string> list{"10.0.0.0/30", "192.168.7.9", "fd00::/8"};
  const auto networks = Networks::parse(list);
  ASSERT_TRUE(networks);
  for (const char* in : {"10.0.0.0", "10.0.0.3", "::ffff:10.0.0.3", "192.168.7.9", "fd12::1"})
    EXPECT_TRUE(networks->holds(in)) << in;
  for (const char* out : {"10.0.0.4", "192.168.7.8", "fe80::1", "::1", "", "ada"})
    EXPECT_FALSE(networks->holds(out)) << out;
  for (const char* bad : {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "fd00::/129", "proxy", ""}) {
    const std::vector<std::string> one{bad};
    EXPECT_FALSE(Networks::parse(one)) << bad;
  }
}

AccessConfig read_http(const std::string& yaml, std::string& problem) {
  config::Diagnostics diagnostics;
  HttpConfig out;
  const auto document = config::Document::parse(
      yaml, "t.yaml", [](const std::string&) { return std::nullopt; }, diagnostics);
  document->read(diagnostics, [&](config::Reader& in) { read(in, out); });
  for (const auto& item : diagnostics.items()) problem += config::to_text(item) + "\n";
  return out.access;
}

TEST(ProxySection, WhatAnybodyCouldUseIsRefused) {
  std::string problem;
  read_http("auth: {proxy: {trusted: [10.0.0.7], roles: {leads: stopper}}}\n", problem);
  EXPECT_THAT(problem, HasSubstr("give it a secret_file"));
  problem.clear();
  read_http(
      "auth: {proxy: {trusted: [ten], secret: '${X:-0123456789abcdef}', roles: {leads: "
      "stoper}}}\n",
      problem);
  EXPECT_THAT(problem, HasSubstr("\"ten\" is no network"));
  EXPECT_THAT(problem, HasSubstr("did you mean \"stopper\"?"));
  problem.clear();
  const auto good = read_http(
      "auth: {proxy: {trusted: [10.0.0.7], secret: '${X:-0123456789abcdef}', roles: {leads: "
      "stopper}}}\n",
      problem);
  EXPECT_EQ(problem, "");
  ASSERT_TRUE(good.proxy);
  EXPECT_EQ(good.proxy->roles.at("leads"), ApiRole::stopper);
}

}  // namespace
}  // namespace tocsin::app
