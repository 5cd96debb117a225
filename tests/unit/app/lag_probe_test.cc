// How far behind a loop says it is: while commits fail, and while a topic cannot be read.
#include "app/serve/metrics.h"
#include "tests/unit/app/topic_loop_fixture.h"

namespace tocsin::app {
namespace {

using simulation::Call;
using simulation::Fault;

class LagProbeTest : public TopicLoopTest {
 protected:
  LagProbeTest() {
    broker_.on_call([this](std::string_view, Call call) {
      Fault fault;
      if (call == refused_) {
        fault.kind = Fault::Kind::refused;
        fault.error = {core::Code::unavailable, "away"};
      }
      return fault;
    });
  }
  std::unique_ptr<Process> measured(Adder adder) {
    const auto with = [this](ingest::Transport& transport) {
      LoopPorts out = ports(transport);
      out.telemetry = &metrics_;
      return out;
    };
    return std::make_unique<Process>(broker_, with, std::move(adder));
  }
  /// Seconds; -1: there is no such series.
  double lag(const std::string& name) {
    const std::string text = metrics_.render();
    const std::string series = "\ntocsin_rules_" + name + "_lag_seconds{stage=\"adder\"} ";
    const auto at = text.find(series);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size()));
  }

  std::optional<Call> refused_;
  PrometheusTelemetry metrics_;
};

TEST_F(LagProbeTest, TheChangelogIsBehindWhileCommitsFail) {
  const auto process = measured(Adder());
  numbers(1, 3);
  run(process->loop, 50);
  EXPECT_EQ(lag("changelog"), 0);
  EXPECT_EQ(lag("global_table"), -1) << "a group shares its topics";
  refused_ = Call::commit;
  numbers(4, 4);
  run(process->loop, 150);  // 3 s
  EXPECT_GT(lag("changelog"), 2.5);
  EXPECT_LT(lag("changelog"), 3.1);
  refused_.reset();
  run(process->loop, 1500);
  EXPECT_EQ(lag("changelog"), 0);
  EXPECT_EQ(sums(), expected(4));
}

TEST_F(LagProbeTest, ATableIsBehindSinceItsTopicsWereReadToTheEnd) {
  Adder adder(false);
  adder.change_wiring().group.clear();
  adder.change_wiring().state_topic.clear();
  adder.change_wiring().state = StateScope::none;
  const auto process = measured(std::move(adder));
  numbers(1, 3);
  run(process->loop, 50);
  EXPECT_LT(lag("global_table"), 0.3);
  EXPECT_EQ(lag("changelog"), -1) << "it has no state";
  refused_ = Call::poll;
  run(process->loop, 150);
  EXPECT_GT(lag("global_table"), 2.5);
  EXPECT_LT(lag("global_table"), 3.5);
  refused_.reset();
  run(process->loop, 1500);
  EXPECT_LT(lag("global_table"), 0.3);
}

}  // namespace
}  // namespace tocsin::app
