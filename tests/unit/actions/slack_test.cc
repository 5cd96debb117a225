#include "tests/unit/actions/chat_post.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing_support;

constexpr char kSlack[] = "{url: 'https://hooks.slack.com/services/T/B/x'}";

TEST(Slack, AMentionInALabelIsText) {
  const auto body = chat_post("slack", kSlack, "<!channel> of <@U1> & more");
  EXPECT_EQ(body["blocks"][1]["text"]["text"], "&lt;!channel&gt; of &lt;@U1&gt; &amp; more");
  EXPECT_THAT(body.dump(), Not(HasSubstr("<!")));
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
