#include "actions/transport/proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;

const ProxyEnvironment kSome{"http://p:1", "p2:2", "", ".corp.example,10.0.0.0/8,db:5432, other"};

TEST(Proxy, TheEnvironmentSaysWhereNothingElseDoes) {
  EXPECT_EQ(proxy_for("http://a.example/x", "", kSome), "http://p:1");
  EXPECT_EQ(proxy_for("https://a.example/x", "environment", kSome), "http://p2:2");
  EXPECT_EQ(proxy_for("https://a.example/x", "none", kSome), "");
  EXPECT_EQ(proxy_for("https://a.example/x", "", {}), "");
  EXPECT_EQ(proxy_for("https://a.example/", "", {"", "", "socks5://s:3", ""}), "socks5://s:3");
}

TEST(Proxy, AnExplicitOneIsForEveryHost) {
  EXPECT_EQ(proxy_for("https://a.corp.example/", "http://mine:3", kSome), "http://mine:3");
}

TEST(Proxy, NoProxyNamesDomainsNetworksAndPorts) {
  for (const char* direct : {"https://a.corp.example/", "https://corp.example/", "http://10.1.2.3/",
                             "http://db:5432/", "http://OTHER/", "http://x.other:81/"}) {
    EXPECT_EQ(proxy_for(direct, "", kSome), "") << direct;
  }
  for (const char* proxied :
       {"https://notcorp.example/", "http://11.1.2.3/", "http://db:5433/", "http://another/"}) {
    EXPECT_NE(proxy_for(proxied, "", kSome), "") << proxied;
  }
  EXPECT_TRUE(in_no_proxy("*", url_parts("http://x/")));
  EXPECT_FALSE(in_no_proxy("", url_parts("http://x/")));
  EXPECT_TRUE(in_no_proxy("fd00::/8", url_parts("http://[fd00::1]:80/")));
  EXPECT_FALSE(in_no_proxy("10.0.0.0/x,/,10/8, ,:,[", url_parts("http://10.0.0.1/")));
}

TEST(Proxy, AHostThatIsAnAddressIsCheckedAsWithoutOne) {
  const AddressGuard guard;
  for (const char* refused :
       {"http://localhost/", "http://a.localhost:80/", "http://127.0.0.1/", "http://[::1]/",
        "http://10.0.0.1/", "http://169.254.169.254/", "http://metadata.google.internal/"}) {
    EXPECT_NE(proxied_host_problem(refused, guard), "") << refused;
  }
  EXPECT_EQ(proxied_host_problem("https://hooks.example/", guard), "");
  const auto local = *AddressGuard::create({"127.0.0.0/8"});
  EXPECT_EQ(proxied_host_problem("http://localhost/", local), "");
  EXPECT_NE(proxied_host_problem("http://169.254.169.254/", local), "");
}

std::string proxy_errors(const std::string& more) {
  return load("receivers: {a: {webhook: {url: 'https://x.example', " + more + "}}}\n").errors;
}

TEST(Proxy, TheKeyTakesAUrlOrAWord) {
  for (const char* fine : {"environment", "none", "'http://p:3128'", "'socks5h://p:1080'"}) {
    EXPECT_EQ(proxy_errors("proxy: " + std::string(fine)), "") << fine;
  }
  for (const char* wrong : {"'p:3128'", "'ftp://p'", "'http://'", "'http://a b'"}) {
    EXPECT_THAT(proxy_errors("proxy: " + std::string(wrong)),
                HasSubstr("expected environment, none"))
        << wrong;
  }
}

TEST(Proxy, ItsPasswordIsASecret) {
  Workbench bench;
  const auto hook =
      bench.make("webhook", "{url: 'https://x.example/', proxy: 'http://user:canary-pw@p:3128'}");
  bench.http.answers = {{HttpFailure::unreachable, "http://user:canary-pw@p:3128 is down", {}}};
  auto notification = sample_notification();
  notification.rendered = *hook->render(notification);
  EXPECT_THAT(notification.rendered + hook->execute(notification, 1, 1s).detail,
              Not(HasSubstr("canary")));
  EXPECT_EQ(bench.http.requests.at(0).proxy, "http://user:canary-pw@p:3128");
  EXPECT_THAT(proxy_errors("proxy: 'ftp://user:canary-pw@p'"), Not(HasSubstr("canary")));
}

TEST(Proxy, ReachesTheRequestAndNoRecord) {
  Workbench bench;
  const auto hook = bench.make("webhook", "{url: 'https://x.example/', proxy: 'http://p:3128'}");
  deliver(*hook, sample_notification());
  EXPECT_EQ(bench.http.requests.at(0).proxy, "http://p:3128");
  EXPECT_THAT(*hook->render(sample_notification()), Not(HasSubstr("3128")));
  const auto plain = bench.make("webhook", "{url: 'https://x.example/'}");
  deliver(*plain, sample_notification());
  EXPECT_EQ(bench.http.requests.at(1).proxy, "");
}

}  // namespace
}  // namespace tocsin::actions
