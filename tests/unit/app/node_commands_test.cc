// A command to a node's agent stands among those to runs: whoever reads these passes it over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "app/stages/platform_stops.h"
#include "app/stages/runs.h"
#include "app/stages/stops.h"
#include "app/view/agent_order.h"
#include "app/view/topic_view.h"
#include "ingest/ingest.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

constexpr core::WallTime kNodeStart{std::chrono::seconds(1'767'312'000)};

Instant node_moment(core::Duration since) { return {kNodeStart + since, 1h + since}; }

// Asked, changed, answered, refused, withdrawn.
std::vector<core::OutRecord> words_with_an_agent() {
  AgentOrder order;
  order.settings.interval = 100ms;
  core::Command first = agent_command(order, "n7", "ann", 1, kNodeStart);
  order.lasts = 10min;
  core::Command second = agent_command(order, "n7", "ann", 2, kNodeStart + 1s);
  core::Ack ack;
  ack.command_id = first.command_id;
  ack.action = "agent";
  ack.phase = "applied";
  ack.attempt = 0;
  ack.worker = "agent";
  ack.node = "n7";
  ack.time = kNodeStart + 2s;
  core::Ack refused = ack;
  refused.command_id = second.command_id;
  refused.phase = "refused";
  return {agent_record(first, "n7", "/c/api"), agent_record(second, "n7", "/c/cli"),
          ingest::encode_ack(ack, ""), ingest::encode_ack(refused, ""), agent_tombstone("n7")};
}

void pass_over(Stage& stage) {
  ASSERT_TRUE(stage.open(node_moment(0s)));
  stage.started(0, node_moment(0s));
  for (const core::OutRecord& record : words_with_an_agent()) {
    auto view = ingest::fixture::view_of(record);
    view.timestamp = core::nanoseconds(kNodeStart);
    const auto refusal = stage.handle(view, {node_moment(3s), false});
    EXPECT_FALSE(refusal) << record.key << ": " << refusal->detail;
  }
  for (core::Duration since = 3s; since < 24h; since += 1h) {
    (void)stage.tick({node_moment(since), [](std::int32_t) { return true; },
                      [](std::int32_t) { return std::optional<core::Duration>(0s); }});
    EXPECT_THAT(stage.take(node_moment(since)).records, IsEmpty()) << stage.wiring().name;
  }
}

class NobodysProcess final : public actions::ProcessControl {
 public:
  actions::Observed send(const actions::ProcessFence&, int) override {
    ADD_FAILURE() << "a process was signalled";
    return actions::Observed::signalled;
  }
};

class NobodysCaller final : public actions::PlatformCaller {
 public:
  void submit(actions::PlatformCall) override { ADD_FAILURE() << "a platform was asked"; }
  std::vector<std::pair<actions::PlatformCall, actions::PlatformAnswer>> take() override {
    return {};
  }
};

TEST(NodeCommands, StagesPassThemOver) {
  core::NullLog log;
  core::NullTelemetry telemetry;
  RunBoard board;
  actions::StopLedger stops;
  actions::StopApprovals approvals;
  actions::ProfileLedger profiles;
  actions::SteeringLedger steering;
  RunsStage runs(board, stops, approvals, profiles, "c", [] { return true; });
  runs.steer_by(&steering);
  pass_over(runs);
  StopsStage here(StopsOptions{"n7", "c", {}, {}}, std::make_unique<NobodysProcess>(), log,
                  telemetry);
  pass_over(here);
  PlatformStopsStage platforms(
      PlatformStopsOptions{"n7", "c"}, {}, [] { return std::make_unique<NobodysCaller>(); }, log,
      telemetry);
  pass_over(platforms);
}

TEST(NodeCommands, TheViewShowsNoStopBecauseOfThem) {
  TopicView view;
  for (const core::OutRecord& record : words_with_an_agent())
    view.apply(ingest::fixture::view_of(record));
  EXPECT_THAT(view.stops(), IsEmpty());
  EXPECT_THAT(view.runs(), IsEmpty());
}

// The key says for whom it is: compaction goes by it, and so does whoever answers.
TEST(NodeCommands, KeysAndPartitions) {
  const auto words = words_with_an_agent();
  for (const core::OutRecord& record : words) {
    const bool answer = record.topic == "acks";
    EXPECT_EQ(record.key, answer ? "node:n7" : "node:n7/agent");
    EXPECT_EQ(record.partition_key, answer ? "" : "node:n7");
  }
  EXPECT_EQ(words.front().key, words.back().key);
  EXPECT_EQ(node_of_key("node:n7/agent"), "n7");
  for (const char* other : {"", "node:/agent", "node:n7", "/agent", "node:n7/stop",
                            "7f6d2f1e-0000-5000-8000-000000000000/agent"})
    EXPECT_EQ(node_of_key(other), "") << other;
  EXPECT_FALSE(check_node_name("rack/7"));
  EXPECT_FALSE(check_node_name(""));
  EXPECT_TRUE(check_node_name("n7.example"));
}

}  // namespace
}  // namespace tocsin::app
