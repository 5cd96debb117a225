// Lifecycle JSON: every event there and back, and what is refused.
#include "ingest/wire/lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/ingest/lifecycle_fixture.h"

namespace tocsin::ingest {
namespace {

using core::Lifecycle;
using core::LifecycleEvent;
using testing::HasSubstr;

Lifecycle round_trip(const Lifecycle& from) {
  const auto back = parse_lifecycle(encode_lifecycle(from));
  EXPECT_TRUE(back) << back.error().message;
  return back ? *back : Lifecycle{};
}

TEST(LifecycleJson, EveryEventComesBack) {
  for (const auto& [name, lifecycle] : fixture::lifecycles()) {
    EXPECT_EQ(round_trip(lifecycle), lifecycle) << name;
  }
}

TEST(LifecycleJson, WritesTheNamesOfThePage) {
  Lifecycle end;
  end.event = LifecycleEvent::end;
  end.outcome = "stopped_by_rule";
  end.exit_code = 77;
  EXPECT_EQ(encode_lifecycle(end), R"({"event":"end","outcome":"stopped_by_rule","exit_code":77})");
}

TEST(LifecycleJson, TextThatIsNotUtf8IsReplacedNotRefused) {
  Lifecycle end;
  end.event = LifecycleEvent::end;
  end.error = "bad \xff byte";
  EXPECT_EQ(round_trip(end).error, "bad \xef\xbf\xbd byte");
}

TEST(LifecycleJson, SaysWhatIsWrong) {
  const auto refusal = [](std::string_view json) -> std::string {
    const auto parsed = parse_lifecycle(json);
    return parsed ? "accepted" : parsed.error().message;
  };
  EXPECT_THAT(refusal(""), HasSubstr("lifecycle: not JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("event is missing"));
  EXPECT_THAT(refusal(R"({"event":"begin"})"), HasSubstr("event: expected start, heartbeat"));
  EXPECT_THAT(refusal(R"({"event":"start","pid":"7"})"), HasSubstr("pid: expected a whole number"));
  EXPECT_THAT(refusal(R"({"event":"start","platform":{"kind":1}})"),
              HasSubstr("platform.kind: expected a text"));
  EXPECT_EQ(refusal(R"({"event":"start","new_in_v2":{"a":[]}})"), "accepted");
}

}  // namespace
}  // namespace tocsin::ingest
