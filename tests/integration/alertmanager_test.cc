// The alertmanager action over a real connection, read by an independent HTTP server.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/integration/child_program.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;
using core::OutcomeClass;
using nlohmann::json;
using tests::ChildProgram;

TEST(RealAlertmanager, FiringAndResolvedAreOneAlertWithAnotherEnd) {
  ChildProgram server({"/usr/bin/python3", "tests/support/webhook_receiver.py"});
  Workbench bench;
  bench.environment.http = nullptr;  // libcurl
  const auto action =
      bench.make("alertmanager", "{url: 'http://127.0.0.1:" + std::to_string(server.port()) +
                                     "', allow_private: [127.0.0.0/8], bearer_token: opensesame}");
  ASSERT_EQ(deliver(*action, sample_notification()).outcome, OutcomeClass::delivered);
  ASSERT_EQ(deliver(*action, sample_notification("two", core::NotificationKind::close)).outcome,
            OutcomeClass::delivered);

  const json firing = json::parse(server.line_with("{"));
  const json resolved = json::parse(server.line_with("{"));
  for (const json* request : {&firing, &resolved}) {
    EXPECT_EQ((*request)["method"], "POST");
    EXPECT_EQ((*request)["path"], "/api/v2/alerts");
    EXPECT_EQ((*request)["headers"]["content-type"], "application/json");
    EXPECT_EQ((*request)["headers"]["authorization"], "Bearer opensesame");
    ASSERT_EQ((*request)["json"].size(), 1u);
  }
  EXPECT_EQ(firing["json"][0]["labels"]["alertname"], "exploding_tensor");
  EXPECT_EQ(firing["json"][0]["labels"], resolved["json"][0]["labels"]);
  EXPECT_EQ(firing["json"][0]["endsAt"], "2026-01-03T03:04:05.678Z");
  EXPECT_EQ(resolved["json"][0]["endsAt"], "2026-01-02T03:05:05.678Z");
}

TEST(RealAlertmanager, WaitsAsLongAsItIsToldTo) {
  ChildProgram server({"/usr/bin/python3", "tests/support/webhook_receiver.py"});
  Workbench bench;
  bench.environment.http = nullptr;
  const auto action =
      bench.make("alertmanager", "{url: 'http://127.0.0.1:" + std::to_string(server.port()) +
                                     "', allow_private: [127.0.0.0/8]}");
  server.say("answer 429 1 7");
  core::AttemptOutcome out;
  // The answer is taken from standard input by another thread: ask until it is there.
  for (int i = 0; i < 200 && out.outcome == OutcomeClass::delivered; ++i) {
    out = deliver(*action, sample_notification());
    (void)server.line_with("{");
  }
  EXPECT_EQ(out.outcome, OutcomeClass::throttled);
  EXPECT_EQ(out.retry_after, 7s);
}

}  // namespace
}  // namespace tocsin::actions
