// When a stop of many ranks is written again for a later step.
#include "actions/stop/stop_muster.h"

#include <gtest/gtest.h>

#include "tests/unit/actions/stops.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;

class StopMusterTest : public ::testing::Test {
 protected:
  /// The run stands at `step` at kStart, two steps a second.
  void stands_at(std::int64_t step) { current_ = {1, {}, false, 3, step, 0.5, kStart}; }
  void write(std::int64_t step, std::uint64_t revision, core::WallTime at) {
    command_.revision = revision;
    core::ValueMap args = *core::as<core::ValueMap>(command_.args);
    if (revision == 1) args.emplace_back("not_before_step", step);
    for (auto& [name, value] : args) {
      if (name == "not_before_step") value = step;
    }
    command_.args = args;
    muster_.on_command(command_, at);
  }
  void answer(std::uint32_t rank, const std::string& phase, const std::string& reason = "",
              std::uint64_t revision = 1) {
    core::Ack out = ack(phase, reason);
    out.rank = rank;
    out.revision = revision;
    muster_.on_ack(out);
  }
  static std::int64_t step_of(const core::Command& command) {
    return *core::as<std::int64_t>(core::find(command.args, "not_before_step"));
  }

  core::Command command_ = stop_command();
  std::optional<core::CurrentRun> current_ = core::CurrentRun{1, {}, false, 3, 100, 0.5, kStart};
  StopMuster muster_{[this](const core::RunUid&) { return current_; }};
};

TEST_F(StopMusterTest, WhenAllHaveHeardNothingIsWrittenAgain) {
  write(110, 1, kStart);
  for (std::uint32_t rank = 0; rank < 3; ++rank) answer(rank, "received");
  EXPECT_TRUE(muster_.due(kStart + 1h).empty());
}

TEST_F(StopMusterTest, WhoHasNotAnsweredHalfWayGetsALaterStep) {
  write(110, 1, kStart);
  answer(0, "received");
  answer(0, "received");  // one rank, however often
  answer(2, "received");
  EXPECT_TRUE(muster_.due(kStart + 2s).empty());
  const auto later = muster_.due(kStart + 3s);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].command_id, "cmd_one");
  EXPECT_EQ(step_of(later[0]), 110 + 2 * 10);  // beyond the first, and further ahead
  EXPECT_EQ(later[0].issued_at, kStart);
  // What counts from the writing moves along: 3 s have passed, 10 s are to come.
  EXPECT_EQ(later[0].expires_at, kStart + 10min + 13s);
  EXPECT_EQ(*core::as<std::string>(core::find(*core::find(later[0].args, "deadline"), "ack")),
            core::to_text(30s + 13s));
  EXPECT_EQ(muster_.due(kStart + 3s).size(), 1u);  // until it is written
  write(130, 2, kStart + 3s);
  EXPECT_TRUE(muster_.due(kStart + 4s).empty());
}

TEST_F(StopMusterTest, OneThatIsTooLateGetsALaterStepAtOnce) {
  write(110, 1, kStart);
  answer(0, "received");
  answer(1, "refused", "too_late");
  stands_at(150);
  const auto later = muster_.due(kStart + 1s);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(step_of(later[0]), 152 + 20);
}

// What the first steps say of the pace is slow.
TEST_F(StopMusterTest, OfAYoungRunTheLaterStepIsFurtherAhead) {
  current_->step = 20;
  current_->step_seconds = 0.1;
  write(30, 1, kStart);
  answer(1, "refused", "too_late");
  const auto later = muster_.due(kStart);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(step_of(later[0]), 30 + 2 * 4 * 20);
}

TEST_F(StopMusterTest, ARankThatDiedDoesNotHoldTheOthersForEver) {
  write(110, 1, kStart);
  std::int64_t step = 110;
  core::WallTime now = kStart;
  for (std::uint64_t revision = 2; revision < 2 + StopMuster::kLater; ++revision) {
    now += 1min;
    const auto later = muster_.due(now);
    ASSERT_EQ(later.size(), 1u);
    EXPECT_GT(step_of(later[0]), step);
    write(step = step_of(later[0]), revision, now);
    answer(0, "received", "", revision);
  }
  EXPECT_TRUE(muster_.due(now + 1h).empty());
}

TEST_F(StopMusterTest, OnceOneRankLeavesNoOtherStepIsNamed) {
  write(110, 1, kStart);
  answer(1, "refused", "too_late");
  answer(0, "accepted");
  EXPECT_TRUE(muster_.due(kStart + 1h).empty());
}

TEST_F(StopMusterTest, AnswersMayBeReadBeforeTheCommand) {
  for (std::uint32_t rank = 0; rank < 3; ++rank) answer(rank, "received");
  write(110, 1, kStart);
  EXPECT_TRUE(muster_.due(kStart + 1h).empty());
}

TEST_F(StopMusterTest, AnswersToAnEarlierRevisionAreNoneToThisOne) {
  write(110, 1, kStart);
  write(130, 2, kStart + 3s);
  for (std::uint32_t rank = 0; rank < 3; ++rank) answer(rank, "received", "", 1);
  EXPECT_EQ(muster_.due(kStart + 1min).size(), 1u);
}

TEST_F(StopMusterTest, OneRankADryRunAndWhatIsOverNeedNoMuster) {
  command_.dry_run = true;
  write(110, 1, kStart);
  EXPECT_TRUE(muster_.due(kStart + 1h).empty());
  command_ = stop_command();
  current_->world_size = 1;
  write(110, 1, kStart);
  EXPECT_TRUE(muster_.due(kStart + 1h).empty());
  command_ = stop_command();
  current_->world_size = 3;
  write(110, 1, kStart);
  current_->ended = true;
  EXPECT_TRUE(muster_.due(kStart + 1h).empty());
  command_ = stop_command();
  current_->ended = false;
  write(110, 1, kStart);
  muster_.on_withdrawn(kRun);
  EXPECT_TRUE(muster_.due(kStart + 1h).empty());
}

}  // namespace
}  // namespace tocsin::actions
