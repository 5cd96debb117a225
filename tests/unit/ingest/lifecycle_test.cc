// Lifecycle JSON: every event there and back, and what is refused.
#include "ingest/wire/lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

TEST(LifecycleJson, EveryFieldOfAStartComesBack) {
  Lifecycle start;
  start.event = LifecycleEvent::start;
  start.job = "digits";
  start.labels = {{"team", "nlp"}, {"größe", "ü"}};
  start.framework = "pytorch 2.3";
  start.version = "0.1.0";
  start.pid = 4711;
  start.pid_start = 99;
  start.host = "h";
  start.node = "n";
  start.launcher = "torchrun";
  start.worker_name = "worker_3";
  start.platform = "slurm";
  start.platform_ref = core::ValueMap{{"cluster", "c"}, {"job", 12}};
  start.continues_from = 400;
  start.capture = core::Value(
      core::ValueMap{{"every", "10 steps"}, {"scalars", core::ValueList{1, 2.5, true}}});
  EXPECT_EQ(round_trip(start), start);
}

TEST(LifecycleJson, TheOtherEventsComeBack) {
  Lifecycle heartbeat;
  heartbeat.step = 12;
  EXPECT_EQ(round_trip(heartbeat), heartbeat);
  Lifecycle applied;
  applied.event = LifecycleEvent::applied;
  applied.command_id = "cmd_x";
  applied.version = "v2";
  applied.effective_step = 30;
  applied.left_out = core::ValueList{"delta of embedding.weight"};
  EXPECT_EQ(round_trip(applied), applied);
  Lifecycle gap;
  gap.event = LifecycleEvent::gap;
  gap.lane = "bulk";
  gap.reason = "queue full";
  gap.frames = 3;
  gap.rows = 300;
  gap.first_step = 5;
  gap.last_step = 9;
  EXPECT_EQ(round_trip(gap), gap);
  Lifecycle leave;
  leave.event = LifecycleEvent::leave;
  leave.reason = "scaled down";
  EXPECT_EQ(round_trip(leave), leave);
  Lifecycle end;
  end.event = LifecycleEvent::end;
  end.outcome = "failed";
  end.exit_code = -11;
  end.error = "segmentation fault";
  end.step = 77;
  EXPECT_EQ(round_trip(end), end);
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
