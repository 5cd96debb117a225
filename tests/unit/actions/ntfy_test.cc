#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using namespace testing_support;
using nlohmann::json;

TEST(Ntfy, IsLoudAsItIsSevereAndOpensTheRunbook) {
  Workbench bench;
  auto notification = sample_notification();
  notification.issues[0].issue.runbook_url = "https://example.com/nan";
  const auto action = bench.make("ntfy", "{url: 'https://ntfy.example', topic: ml-alarms}");
  deliver(*action, notification);
  EXPECT_EQ(bench.http.requests.at(0).url, "https://ntfy.example");
  const json body = json::parse(bench.http.requests[0].body);
  EXPECT_EQ(body["topic"], "ml-alarms");
  EXPECT_EQ(body["priority"], 4);
  EXPECT_EQ(body["click"], "https://example.com/nan");
  EXPECT_EQ(body["actions"][0]["label"], "Runbook");
  deliver(*action, sample_notification("two", core::NotificationKind::close));
  EXPECT_EQ(json::parse(bench.http.requests.at(1).body)["priority"], 2);
}

TEST(Ntfy, ATopicIsAWord) {
  EXPECT_THAT(load("receivers: {a: {ntfy: {topic: 'a/b'}}}\n").errors, HasSubstr("letters"));
}

}  // namespace
}  // namespace tocsin::actions
