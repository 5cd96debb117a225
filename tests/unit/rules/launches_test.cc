// Which launch a record belongs to: the cases of docs/launches.md, one table each.
#include "rules/engine/memory/launches.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tocsin::rules {
namespace {

using V = Launches::Standing;

/// A process of a rank; `opened` stands for the launch it comes from.
ProcessId process(std::uint32_t rank, std::uint64_t opened) { return {1000 + rank, rank, opened}; }

struct Step {
  enum class What { start, heartbeat, frame, json } what;
  std::uint32_t rank;
  std::uint64_t opened;
  std::string key;
  std::uint32_t header;
  V expected;
  std::uint32_t attempt;  // the newest, after it
  bool ended = false;     // the newest attempt was over before it
};

void play(const std::vector<Step>& steps) {
  Launches launches;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const ProcessId who = process(step.rank, step.opened);
    V verdict{};
    switch (step.what) {
      case Step::What::start:
        verdict = launches.start(who, step.key, step.header, step.ended);
        break;
      case Step::What::heartbeat:
        verdict = launches.heartbeat(who, step.key, step.header, step.ended);
        break;
      case Step::What::frame:
        verdict = launches.frame(who, step.header, step.ended);
        break;
      case Step::What::json:
        verdict = launches.stated(step.header, step.ended);
        break;
    }
    EXPECT_EQ(verdict, step.expected) << "step " << i;
    EXPECT_EQ(launches.attempt(), step.attempt) << "step " << i;
  }
}

constexpr auto kStarts = Step::What::start;
constexpr auto kBeat = Step::What::heartbeat;
constexpr auto kFrame = Step::What::frame;
constexpr auto kJson = Step::What::json;

TEST(Launches, WhoNeverToldItsKeyHasThatOfTheAttemptInWhichItWasHeard) {
  // Rank 2's start and heartbeats are lost: what it finds must not stop the next launch.
  play({{kStarts, 0, 10, "a", 1, V::opened, 1},
        {kFrame, 2, 12, "", 1, V::current, 1},
        {kStarts, 0, 20, "b", 1, V::opened, 2},
        {kFrame, 2, 12, "", 1, V::stale, 2}});
  // The next launch has the same key, or none: it may be one of its ranks.
  for (const char* key : {"a", ""}) {
    play({{kStarts, 0, 10, "a", 1, V::opened, 1},
          {kFrame, 2, 12, "", 1, V::current, 1},
          {kStarts, 0, 20, key, 1, V::opened, 2},
          {kFrame, 2, 12, "", 1, V::moved, 2}});
  }
}

TEST(Launches, AnEarlyRankOfTheNextLaunchIsOfItAsSoonAsItTellsItsKey) {
  play({{kStarts, 0, 10, "a", 1, V::opened, 1},
        {kFrame, 2, 22, "", 1, V::current, 1},
        {kStarts, 0, 20, "b", 1, V::opened, 2},
        {kFrame, 2, 22, "", 1, V::stale, 2},
        {kBeat, 2, 22, "b", 1, V::moved, 2},
        {kFrame, 2, 22, "", 1, V::current, 2}});
}

TEST(Launches, ANamedRunLaunchedAgainWithTheSameHeaderIsTheNextAttempt) {
  play({{kStarts, 0, 10, "", 1, V::opened, 1},
        {kFrame, 0, 10, "", 1, V::current, 1},
        {kStarts, 0, 20, "", 1, V::opened, 2, true},
        {kFrame, 0, 20, "", 1, V::current, 2},
        {kFrame, 0, 10, "", 1, V::stale, 2}});
}

TEST(Launches, TorchrunAgainWithAFixedPortAndTheSameKey) {
  play({{kStarts, 0, 10, "none:29500", 100, V::opened, 100},
        {kStarts, 1, 10, "none:29500", 101, V::current, 100},
        // The first launch was killed: no end was seen.
        {kStarts, 1, 20, "none:29500", 200, V::opened, 200},
        {kStarts, 0, 20, "none:29500", 203, V::current, 200},
        {kFrame, 0, 10, "none:29500", 100, V::stale, 200},
        {kFrame, 1, 20, "none:29500", 200, V::current, 200}});
}

TEST(Launches, AgentsThatStartSecondsApartAreOneLaunch) {
  play({{kStarts, 0, 10, "host:1", 1000, V::opened, 1000},
        {kFrame, 0, 10, "host:1", 1000, V::current, 1000},
        {kStarts, 1, 17, "host:1", 1007, V::current, 1000},
        {kFrame, 1, 17, "host:1", 1007, V::current, 1000},
        {kStarts, 2, 18, "", 1008, V::current, 1000}});
}

TEST(Launches, TwoLaunchesInQuickSuccessionWithStartsMixed) {
  play({{kStarts, 0, 10, "k", 1, V::opened, 1},
        {kStarts, 1, 10, "k", 1, V::current, 1},
        {kStarts, 0, 20, "k", 1, V::opened, 2},   // second launch
        {kStarts, 0, 30, "k", 1, V::opened, 3},   // third
        {kStarts, 1, 20, "k", 1, V::current, 3},  // second's, late: taken for the third's …
        {kStarts, 1, 30, "k", 1, V::opened, 4},   // … until that comes
        {kFrame, 0, 30, "k", 1, V::moved, 4},     // and the third is together again
        {kFrame, 0, 30, "k", 1, V::current, 4},
        {kFrame, 1, 30, "k", 1, V::current, 4},
        {kFrame, 1, 20, "k", 1, V::stale, 4},
        {kFrame, 0, 20, "k", 1, V::stale, 4}});
}

TEST(Launches, AProcessThatMovedIsReplacedByItsWorkersNextStart) {
  play({{kStarts, 0, 10, "", 1, V::opened, 1},
        {kStarts, 1, 10, "", 1, V::current, 1},
        {kStarts, 0, 20, "", 1, V::opened, 2},
        {kFrame, 1, 10, "", 1, V::moved, 2},
        {kStarts, 1, 20, "", 1, V::current, 2},
        {kFrame, 1, 20, "", 1, V::current, 2}});
}

TEST(Launches, RestartInPlace) {
  play({{kStarts, 0, 10, "boot/1/2", 1, V::opened, 1},
        {kStarts, 1, 10, "boot/1/2", 1, V::current, 1},
        {kStarts, 0, 11, "boot/1/2", 1, V::opened, 2},
        {kStarts, 1, 11, "boot/1/2", 1, V::current, 2},
        {kFrame, 1, 10, "boot/1/2", 1, V::stale, 2}});
}

TEST(Launches, ResumeOnAnotherNodeHasAnotherKey) {
  play({{kStarts, 0, 10, "nodeA", 500, V::opened, 500},
        {kStarts, 0, 20, "nodeB", 400, V::opened, 501},  // its clock is behind: still later
        {kFrame, 0, 10, "nodeA", 500, V::stale, 501},
        {kStarts, 1, 12, "nodeA", 502, V::late, 501},
        {kFrame, 1, 12, "nodeA", 502, V::stale, 501}});
}

TEST(Launches, AKeyThatComesAgainLaterIsANewLaunch) {
  play({{kStarts, 0, 10, "a", 1, V::opened, 1},
        {kStarts, 0, 20, "b", 1, V::opened, 2},
        {kStarts, 0, 30, "a", 1, V::opened, 3},
        {kFrame, 0, 30, "a", 1, V::current, 3}});
}

TEST(Launches, WithoutAStartTheHeartbeatTellsTheKey) {
  play({{kStarts, 0, 10, "a", 1, V::opened, 1},
        {kStarts, 0, 20, "b", 2, V::opened, 2},
        {kFrame, 1, 12, "", 1, V::current, 2},  // start not seen: the newest, for now
        {kBeat, 1, 12, "a", 1, V::stale, 2},    // it is the first launch's
        {kFrame, 1, 12, "", 1, V::stale, 2},
        {kFrame, 2, 22, "", 2, V::current, 2},
        {kBeat, 2, 22, "b", 2, V::current, 2},
        {kFrame, 3, 30, "", 3, V::current, 2},
        {kBeat, 3, 30, "c", 3, V::opened, 3}});
}

TEST(Launches, AfterTheEndWhoeverIsNewOpensTheNextAttempt) {
  play({{kStarts, 0, 10, "k", 1, V::opened, 1},
        {kFrame, 0, 10, "k", 1, V::stale, 1, true},
        {kStarts, 1, 20, "k", 1, V::opened, 2, true},  // of a larger launch with the same key
        {kStarts, 0, 20, "k", 1, V::current, 2}});
}

TEST(Launches, JsonBelongsToTheAttemptThatItStates) {
  play({{kJson, 0, 0, "", 1, V::opened, 1},
        {kJson, 0, 0, "", 1, V::current, 1},
        {kJson, 0, 0, "", 3, V::opened, 3},
        {kJson, 0, 0, "", 1, V::stale, 3}});
}

TEST(Launches, AStartThatGotLostDoesNotHideTheNextLaunch) {
  // Of the first launch only frames arrived: its worker's next process is another launch all the
  // same, and what was asked of the first one must not reach it.
  play({{kFrame, 0, 10, "", 100, V::opened, 100},
        {kFrame, 0, 10, "", 100, V::current, 100},
        {kStarts, 0, 20, "k", 135, V::opened, 135},
        {kFrame, 0, 10, "", 100, V::stale, 135}});
}

TEST(Launches, AStartThatGotLostDoesNotLeaveRoomForTheNextLaunch) {
  play({{kStarts, 0, 10, "", 100, V::opened, 100},
        {kStarts, 1, 11, "", 101, V::current, 100},
        {kStarts, 0, 20, "", 138, V::opened, 138},
        {kFrame, 1, 11, "", 101, V::moved, 138},
        // Of the second launch rank 1's start is lost: its frames open another attempt.
        {kFrame, 1, 24, "", 146, V::opened, 146},
        {kFrame, 0, 20, "", 138, V::moved, 146},
        // The third launch must not join that.
        {kStarts, 0, 30, "", 178, V::opened, 178},
        {kStarts, 1, 30, "", 182, V::current, 178}});
}

TEST(Launches, WhoseStartGotLostKeepsItsPlaceWhenItComesAlong) {
  // Rank 0 of the second launch is heard of without its start; rank 1's start opens another attempt,
  // and rank 0 comes along. Its worker's next start is the third launch.
  play({{kStarts, 0, 10, "k", 100, V::opened, 100},
        {kStarts, 1, 10, "k", 100, V::current, 100},
        {kFrame, 0, 20, "", 120, V::opened, 120},
        {kFrame, 1, 10, "", 100, V::moved, 120},
        {kStarts, 1, 20, "k", 121, V::opened, 121},
        {kFrame, 0, 20, "", 120, V::moved, 121},
        {kStarts, 0, 30, "k", 130, V::opened, 130}});
}

TEST(Launches, AProcessThatMovedAndWasReplacedIsStale) {
  play({{kStarts, 0, 10, "k", 1, V::opened, 1},
        {kStarts, 1, 10, "k", 1, V::current, 1},
        {kStarts, 0, 20, "k", 1, V::opened, 2},
        {kFrame, 1, 10, "k", 1, V::moved, 2},
        {kStarts, 1, 20, "k", 1, V::current, 2},
        {kFrame, 1, 10, "k", 1, V::stale, 2},
        {kBeat, 1, 10, "k", 1, V::stale, 2},
        {kFrame, 1, 20, "k", 1, V::current, 2}});
}

TEST(Launches, AClockThatSteppedBackBetweenTwoLaunchesDecidesNothing) {
  play({{kStarts, 0, 20, "k", 1, V::opened, 1},
        {kStarts, 1, 20, "k", 1, V::current, 1},
        {kStarts, 0, 10, "k", 1, V::opened, 2},  // opened later, by an earlier clock
        {kFrame, 0, 10, "k", 1, V::current, 2},
        {kFrame, 0, 20, "k", 1, V::stale, 2},
        {kFrame, 1, 20, "k", 1, V::moved, 2},
        {kStarts, 1, 10, "k", 1, V::current, 2},
        {kFrame, 1, 20, "k", 1, V::stale, 2}});
}

TEST(Launches, AfterManyLaunchesTheNewestOneStillHasItsKeyAndItsStart) {
  Launches launches;
  for (std::uint64_t i = 1; i <= 30; ++i) {
    ASSERT_EQ(launches.start(process(0, i), "key" + std::to_string(i), 1, true), V::opened);
  }
  EXPECT_EQ(launches.start(process(0, 30), "key30", 1, false), V::current)
      << "the same start again";
  EXPECT_EQ(launches.start(process(1, 30), "key29", 1, false), V::late);
  EXPECT_EQ(launches.start(process(2, 30), "key30", 1, false), V::current);
  EXPECT_EQ(launches.attempt(), 30U);
}

TEST(Launches, TellsOnceOfAProcessOfWhichNothingIsWatched) {
  Launches launches;
  launches.start(process(0, 10), "a", 1, false);
  launches.start(process(0, 20), "b", 1, false);
  EXPECT_EQ(launches.start(process(1, 11), "a", 1, false), V::late);
  EXPECT_FALSE(launches.first_of_unwatched(process(0, 10))) << "it was watched while it was due";
  EXPECT_TRUE(launches.first_of_unwatched(process(1, 11)));
  EXPECT_FALSE(launches.first_of_unwatched(process(1, 11)));
}

TEST(Launches, RemembersABoundedNumberOfThem) {
  Launches launches;
  std::size_t most = 0;
  for (std::uint64_t i = 1; i <= 5000; ++i) {
    EXPECT_EQ(launches.start(process(0, i), "key" + std::to_string(i), 1, true), V::opened);
    most = std::max(most, launches.size());
  }
  EXPECT_EQ(launches.attempt(), 5000U);
  EXPECT_LE(most, 20U);
  std::string bytes;
  Writer writer(bytes);
  io(writer, launches);
  EXPECT_LT(bytes.size(), 2000U);
}

}  // namespace
}  // namespace tocsin::rules
