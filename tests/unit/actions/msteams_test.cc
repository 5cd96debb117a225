#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using namespace testing_support;
using nlohmann::json;

TEST(MsTeams, IsOneCardWhoseTitleShowsTheSeverity) {
  Workbench bench;
  auto notification = sample_notification();
  notification.issues[0].issue.runbook_url = "https://example.com/a b";
  const auto action = bench.make("msteams", "{url: 'https://flows.example/x'}");
  EXPECT_EQ(deliver(*action, notification).outcome, core::OutcomeClass::delivered);
  const json card = json::parse(bench.http.requests.at(0).body)["attachments"][0]["content"];
  EXPECT_EQ(card["body"][0]["style"], "attention");
  EXPECT_EQ(card["actions"][0], (json{{"type", "Action.OpenUrl"},
                                      {"title", "Runbook"},
                                      {"url", "https://example.com/a%20b"}}));
  deliver(*action, sample_notification("two", core::NotificationKind::close));
  EXPECT_THAT(bench.http.requests.at(1).body, HasSubstr(R"("style":"good")"));
}

TEST(MsTeams, AConnectorOfOffice365IsRefusedBeforeItIsUsed) {
  EXPECT_THAT(
      load("receivers: {a: {msteams: {url: 'https://x.webhook.office.com/webhookb2/1'}}}\n").errors,
      HasSubstr("retired"));
}

}  // namespace
}  // namespace tocsin::actions
