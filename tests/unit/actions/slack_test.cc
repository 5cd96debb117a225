#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;
using nlohmann::json;

constexpr char kSlack[] = "{url: 'https://hooks.slack.com/services/T/B/x'}";

TEST(Slack, AMentionInALabelIsText) {
  Workbench bench;
  auto notification = sample_notification();
  notification.issues[0].issue.summary = "<!channel> of <@U1> & more";
  deliver(*bench.make("slack", kSlack), notification);
  const json body = json::parse(bench.http.requests.at(0).body);
  EXPECT_EQ(body["blocks"][1]["text"]["text"], "&lt;!channel&gt; of &lt;@U1&gt; &amp; more");
  EXPECT_THAT(bench.http.requests[0].body, Not(HasSubstr("<!")));
}

TEST(Slack, APageThatIsNotSlacksIsNoDelivery) {
  Workbench bench;
  const auto action = bench.make("slack", kSlack);
  bench.http.answers.push_back({HttpFailure::none, "", {200, {}, "<html>log in</html>"}});
  EXPECT_EQ(deliver(*action, sample_notification()).outcome, core::OutcomeClass::configuration);
  bench.http.answers.push_back({HttpFailure::none, "", {200, {}, "ok"}});
  EXPECT_EQ(deliver(*action, sample_notification()).outcome, core::OutcomeClass::delivered);
}

}  // namespace
}  // namespace tocsin::actions
