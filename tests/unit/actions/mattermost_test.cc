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

TEST(Mattermost, AMentionInALabelIsTextAndChannelAndNameAreTheOperators) {
  Workbench bench;
  auto notification = sample_notification();
  notification.issues[0].issue.summary = "@channel: *loss*";
  deliver(*bench.make("mattermost",
                      "{url: 'https://chat.example/hooks/x', channel: ml, username: Tocsin}"),
          notification);
  const json body = json::parse(bench.http.requests.at(0).body);
  EXPECT_THAT(std::string(body["attachments"][0]["text"]), HasSubstr("@\u200bchannel: \\*loss\\*"));
  EXPECT_THAT(bench.http.requests[0].body, Not(HasSubstr("@channel")));
  EXPECT_EQ(body["channel"], "ml");
  EXPECT_EQ(body["username"], "Tocsin");
  EXPECT_EQ(body["attachments"][0]["color"], "#cf222e");
}

}  // namespace
}  // namespace tocsin::actions
