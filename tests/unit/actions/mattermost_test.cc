#include "tests/unit/actions/chat_post.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Mattermost, AMentionInALabelIsTextAndChannelAndNameAreTheOperators) {
  const auto body = testing_support::chat_post(
      "mattermost", "{url: 'https://chat.example/hooks/x', channel: ml, username: Tocsin}",
      "@channel: *loss*");
  EXPECT_THAT(std::string(body["attachments"][0]["text"]), HasSubstr("@\u200bchannel: \\*loss\\*"));
  EXPECT_THAT(body.dump(), Not(HasSubstr("@channel")));
  EXPECT_EQ(body["channel"], "ml");
  EXPECT_EQ(body["username"], "Tocsin");
  EXPECT_EQ(body["attachments"][0]["color"], "#cf222e");
}

}  // namespace
}  // namespace tocsin::actions
