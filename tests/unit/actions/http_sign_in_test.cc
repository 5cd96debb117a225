// Passwords and OAuth2 tokens of HTTP integrations: docs/actions/keys.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "actions/transport/redact.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using namespace testing_support;
using core::OutcomeClass;

constexpr char kSignInHook[] = "https://hooks.example/in";
constexpr char kSignInTokens[] = "https://login.example/token";

std::string sign_in_hook(const std::string& keys) {
  return "{url: '" + std::string(kSignInHook) + "', " + keys + "}";
}
std::string sign_in_oauth2(const std::string& more = "") {
  return sign_in_hook("oauth2: {client_id: 'id one', client_secret: 's3cret/x', token_url: '" +
                      std::string(kSignInTokens) + "'" + more + "}");
}
HttpResult answer_of(int status, std::string body) {
  return {HttpFailure::none, "", {status, {}, std::move(body)}};
}
HttpResult token_answer(const std::string& token, int expires_in = 600) {
  return answer_of(200, R"({"access_token": ")" + token +
                            R"(", "token_type": "bearer", "expires_in": )" +
                            std::to_string(expires_in) + "}");
}
std::string sign_in_errors(const std::string& keys) {
  return load("receivers: {a: {webhook: " + keys + "}}\n").errors;
}
std::size_t count_to(const FakeHttpClient& http, const std::string& url) {
  return static_cast<std::size_t>(std::count_if(http.requests.begin(), http.requests.end(),
                                                [&](const auto& one) { return one.url == url; }));
}

TEST(HttpSignIn, APasswordIsSentAsBasicAndNeverComesBack) {
  Workbench bench;
  const auto hook =
      bench.make("webhook", sign_in_hook("basic_auth: {username: ada, password: 'pass word'}"));
  bench.http.answers.push_back(answer_of(400, "you sent YWRhOnBhc3Mgd29yZA== and pass word"));
  const auto out = deliver(*hook, sample_notification());
  EXPECT_THAT(bench.http.requests.at(0).headers,
              Contains(Pair("authorization", "Basic YWRhOnBhc3Mgd29yZA==")));
  EXPECT_EQ(out.detail, "you sent <redacted> and <redacted>");
}

TEST(HttpSignIn, ATokenIsFetchedOnceAndUsedUntilShortlyBeforeItsEnd) {
  Workbench bench;
  const auto hook =
      bench.make("webhook", sign_in_oauth2(", scopes: [a.read, b], parameters: {audience: 'x&y'}"));
  bench.http.answers.push_back(token_answer("tok-1", 600));
  EXPECT_EQ(deliver(*hook, sample_notification()).outcome, OutcomeClass::delivered);
  ASSERT_EQ(bench.http.requests.size(), 2u);
  const HttpRequest& asked = bench.http.requests[0];
  EXPECT_EQ(asked.method, "POST");
  EXPECT_EQ(asked.url, kSignInTokens);
  EXPECT_EQ(asked.body, "grant_type=client_credentials&scope=a.read%20b&audience=x%26y");
  EXPECT_THAT(asked.headers,
              Contains(Pair("authorization", "Basic " + base64("id%20one:s3cret%2Fx"))));
  EXPECT_THAT(asked.headers, Contains(Pair("content-type", "application/x-www-form-urlencoded")));
  EXPECT_TRUE(asked.answers_credential);
  EXPECT_EQ(bench.http.requests[1].url, kSignInHook);
  EXPECT_THAT(bench.http.requests[1].headers, Contains(Pair("authorization", "Bearer tok-1")));

  bench.clock.advance(539s);
  deliver(*hook, sample_notification());
  EXPECT_EQ(count_to(bench.http, kSignInTokens), 1u);
  bench.clock.advance(1s);  // the last minute
  bench.http.answers.push_back(token_answer("tok-2"));
  deliver(*hook, sample_notification());
  EXPECT_EQ(count_to(bench.http, kSignInTokens), 2u);
  EXPECT_THAT(bench.http.requests.back().headers, Contains(Pair("authorization", "Bearer tok-2")));
}

TEST(HttpSignIn, AShortTokenIsUsedAndOneWithoutAnEndIsNotKeptForEver) {
  Workbench bench;
  const auto hook = bench.make("webhook", sign_in_oauth2());
  bench.http.answers.push_back(token_answer("tok-1", 10));
  deliver(*hook, sample_notification());
  bench.clock.advance(7s);
  deliver(*hook, sample_notification());
  EXPECT_EQ(count_to(bench.http, kSignInTokens), 1u);
  bench.clock.advance(1s);
  bench.http.answers.push_back(answer_of(200, R"({"access_token": "tok-2"})"));
  deliver(*hook, sample_notification());
  EXPECT_EQ(count_to(bench.http, kSignInTokens), 2u);
  bench.clock.advance(4min);
  bench.http.answers.push_back(token_answer("tok-3"));
  deliver(*hook, sample_notification());
  EXPECT_EQ(count_to(bench.http, kSignInTokens), 3u);
}

TEST(HttpSignIn, AKeptTokenThatIsRefusedIsReplacedOnce) {
  Workbench bench;
  const auto hook = bench.make("webhook", sign_in_oauth2());
  bench.http.answers = {token_answer("tok-1"), answer_of(204, ""), answer_of(401, "expired"),
                        token_answer("tok-2"), answer_of(204, "")};
  deliver(*hook, sample_notification());
  EXPECT_EQ(deliver(*hook, sample_notification()).outcome, OutcomeClass::delivered);
  EXPECT_EQ(bench.http.requests.size(), 5u);
  EXPECT_THAT(bench.http.requests.back().headers, Contains(Pair("authorization", "Bearer tok-2")));

  bench.http.answers = {answer_of(401, "no"), token_answer("tok-3"), answer_of(401, "tok-3: no")};
  const auto refused = deliver(*hook, sample_notification());
  EXPECT_EQ(refused.outcome, OutcomeClass::configuration);
  EXPECT_EQ(refused.code, "401");
  EXPECT_EQ(refused.detail, "<redacted>: no");
  EXPECT_EQ(bench.http.requests.size(), 8u);
}

TEST(HttpSignIn, ANewTokenThatIsRefusedIsNotAskedForAgain) {
  Workbench bench;
  const auto hook = bench.make("webhook", sign_in_oauth2());
  bench.http.answers = {token_answer("tok-1"), answer_of(401, "no")};
  EXPECT_EQ(deliver(*hook, sample_notification()).outcome, OutcomeClass::configuration);
  EXPECT_EQ(bench.http.requests.size(), 2u);
}

TEST(HttpSignIn, WithoutATokenNothingIsSentAndTheReasonIsTold) {
  struct Case {
    HttpResult answer;
    OutcomeClass outcome;
    std::string words;
  };
  const std::vector<Case> cases{
      {answer_of(401, R"({"error": "invalid_client", "error_description": "s3cret/x is wrong"})"),
       OutcomeClass::configuration, "401 invalid_client: <redacted> is wrong"},
      {answer_of(400, R"({"error": "invalid_scope"})"), OutcomeClass::configuration,
       "invalid_scope"},
      {answer_of(302, ""), OutcomeClass::configuration, "302"},
      {answer_of(503, "busy"), OutcomeClass::transient, "503 busy"},
      {answer_of(429, ""), OutcomeClass::transient, "429"},
      {{HttpFailure::unreachable, "no route", {}}, OutcomeClass::transient, "unreachable no route"},
      {{HttpFailure::no_answer, "slow", {}}, OutcomeClass::transient, "no_answer"},
      {{HttpFailure::certificate, "expired", {}}, OutcomeClass::configuration, "certificate"},
      {{HttpFailure::blocked, "10.0.0.1", {}}, OutcomeClass::configuration, "address_blocked"},
      {answer_of(200, "<html>"), OutcomeClass::configuration, "no JSON"},
      {answer_of(200, R"({"token": "x"})"), OutcomeClass::configuration, "no access_token"},
      {answer_of(200, R"({"access_token": "a\r\nb: c"})"), OutcomeClass::configuration,
       "does not fit"},
      {answer_of(200, R"({"access_token": "abc", "token_type": "mac"})"),
       OutcomeClass::configuration, "found mac"},
  };
  for (const Case& one : cases) {
    Workbench bench;
    const auto hook = bench.make("webhook", sign_in_oauth2());
    bench.http.answers.push_back(one.answer);
    const auto out = deliver(*hook, sample_notification());
    EXPECT_EQ(out.outcome, one.outcome) << one.words;
    EXPECT_EQ(out.code, "oauth2");
    EXPECT_THAT(out.detail, HasSubstr(one.words));
    EXPECT_THAT(out.detail, Not(HasSubstr("s3cret")));
    EXPECT_EQ(count_to(bench.http, kSignInHook), 0u) << one.words;
  }
}

TEST(HttpSignIn, CredentialsStandInTheBodyWhereAServerWantsThem) {
  Workbench bench;
  const auto hook = bench.make("webhook", sign_in_oauth2(", credentials_in: body"));
  bench.http.answers.push_back(token_answer("tok-1"));
  deliver(*hook, sample_notification());
  EXPECT_EQ(bench.http.requests[0].body,
            "grant_type=client_credentials&client_id=id%20one&client_secret=s3cret%2Fx");
  EXPECT_THAT(bench.http.requests[0].headers, Not(Contains(Key("authorization"))));
}

TEST(HttpSignIn, TheTokenComesTheSameWayAsTheMessageGoes) {
  Workbench bench;
  const auto hook = bench.make(
      "webhook",
      "{url: 'https://10.0.0.1/x', allow_private: [10.0.0.0/8], proxy: 'http://p.example:1', "
      "http2: false, tls: {ca_file: ca.pem, server_name: hook.example, min_version: '1.3'}, "
      "oauth2: {client_id: a, client_secret: bcde, token_url: 'https://10.0.0.2/t'}}");
  bench.http.answers.push_back(token_answer("tok-1"));
  deliver(*hook, sample_notification());
  const HttpRequest& token = bench.http.requests.at(0);
  const HttpRequest& message = bench.http.requests.at(1);
  EXPECT_EQ(token.guard, message.guard);
  EXPECT_EQ(token.proxy, "http://p.example:1");
  EXPECT_EQ(token.tls.ca_file, "ca.pem");
  EXPECT_EQ(token.tls.min_version, "1.3");
  EXPECT_FALSE(token.http2);
  EXPECT_EQ(token.tls.server_name, "") << "the token's host has a name of its own";
  EXPECT_EQ(message.tls.server_name, "hook.example");
}

TEST(HttpSignIn, AnotherSecretInTheFileGetsANewToken) {
  const auto file = std::filesystem::path(::testing::TempDir()) / "sign_in_client_secret";
  std::ofstream(file) << "first-secret\n";
  Workbench bench;
  const auto hook = bench.make(
      "webhook", sign_in_hook("oauth2: {client_id: a, client_secret_file: " + file.string() +
                              ", token_url: '" + kSignInTokens + "'}"));
  bench.http.answers.push_back(token_answer("tok-1"));
  deliver(*hook, sample_notification());
  std::ofstream(file) << "other-secret\n";
  bench.http.answers.push_back(token_answer("tok-2"));
  deliver(*hook, sample_notification());
  EXPECT_THAT(bench.http.requests.at(2).headers,
              Contains(Pair("authorization", "Basic " + base64("a:other-secret"))));
  std::filesystem::remove(file);
  const auto gone = deliver(*hook, sample_notification());
  EXPECT_EQ(gone.outcome, OutcomeClass::configuration);
  EXPECT_THAT(gone.detail, HasSubstr("oauth2.client_secret"));
}

// Several groups of one integration are in flight at once.
TEST(HttpSignIn, OneThreadFetchesAndTheOthersWait) {
  struct SlowTokens final : HttpClient {
    HttpResult send(const HttpRequest& request) override {
      if (request.url != kSignInTokens) return answer_of(204, "");
      ++fetched;
      std::this_thread::sleep_for(50ms);
      return token_answer("tok-1");
    }
    std::atomic<int> fetched{0};
  };
  Workbench bench;
  SlowTokens slow;
  bench.environment.http = &slow;
  const auto hook = bench.make("webhook", sign_in_oauth2());
  std::atomic<int> delivered{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        if (deliver(*hook, sample_notification()).outcome == OutcomeClass::delivered) ++delivered;
      });
    }
  }
  EXPECT_EQ(delivered, 4);
  EXPECT_EQ(slow.fetched, 1);
}

TEST(HttpSignIn, ATrialShowsNeitherSecretNorToken) {
  const Loaded loaded = load("receivers: {a: {webhook: " + sign_in_oauth2() + "}}\n");
  ASSERT_EQ(loaded.errors, "");
  Workbench bench;
  bench.http.answers = {token_answer("canary-token"), answer_of(200, "hello canary-token")};
  const Trial trial = try_integration(loaded.receivers.integrations.at(0), bench.environment, {});
  ASSERT_EQ(trial.steps.at(0).exchanges.size(), 2u);
  const std::string shown = core::to_json(to_value(trial));
  EXPECT_THAT(shown, HasSubstr(kSignInTokens));
  EXPECT_THAT(shown, HasSubstr("hello <redacted>"));
  EXPECT_THAT(shown, Not(HasSubstr("canary")));
  EXPECT_THAT(shown, Not(HasSubstr("s3cret")));
}

TEST(HttpSignIn, ADryRunShowsTheMessageToo) {
  const Loaded loaded = load("receivers: {a: {webhook: " + sign_in_oauth2() + "}}\n");
  Workbench bench;
  TrialOptions dry;
  dry.dry_run = true;
  const Trial trial = try_integration(loaded.receivers.integrations.at(0), bench.environment, dry);
  EXPECT_TRUE(bench.http.requests.empty());
  ASSERT_EQ(trial.steps.at(0).exchanges.size(), 2u);
  EXPECT_THAT(trial.steps[0].exchanges[1].request, HasSubstr("hooks.example"));
}

TEST(HttpSignIn, OneWayAloneAndWhatBelongsToIt) {
  EXPECT_EQ(sign_in_errors(sign_in_oauth2()), "");
  EXPECT_THAT(
      sign_in_errors(sign_in_hook("bearer_token: abcd, basic_auth: {username: a, password: bcde}")),
      HasSubstr("expected one of bearer_token, basic_auth and oauth2, found 2"));
  EXPECT_THAT(sign_in_errors(sign_in_hook("basic_auth: {username: a}")), HasSubstr("password"));
  EXPECT_THAT(sign_in_errors(sign_in_hook("basic_auth: {username: 'a:b', password: bcde}")),
              HasSubstr("colon"));
  EXPECT_THAT(
      sign_in_errors(sign_in_hook("oauth2: {client_id: a, token_url: 'https://x.example/'}")),
      HasSubstr("client_secret"));
  EXPECT_THAT(sign_in_errors(sign_in_hook(
                  "oauth2: {client_id: a, client_secret: bcde, token_url: 'http://10.0.0.1/'}")),
              HasSubstr("token_url: the address 10.0.0.1 is not public"));
  EXPECT_THAT(sign_in_errors(sign_in_hook("tls: {min_version: '1.1'}")), HasSubstr("1.2"));
  EXPECT_THAT(sign_in_errors(sign_in_hook("tls: {server_name: 'https://a.example'}")),
              HasSubstr("server_name"));
}

}  // namespace
}  // namespace tocsin::actions
