// Which scalars of telemetry are kept for metrics, and by which names.
#include "app/stages/scalars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/topics.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

const core::WallTime kLogged = core::wall_time(1767323045678000000);
const core::RunUid kLoggingRun = core::run_uid_v5("scalars stage");

class ScalarsStageTest : public testing::Test {
 protected:
  ScalarsStageTest() {
    actions::TrainingScalars::Options wanted;
    wanted.patterns = {"loss"};
    scalars_.want("a", wanted);
    EXPECT_TRUE(stage_.open(at()));
  }
  static Instant at() { return {kLogged, 1h}; }
  void read(std::string_view value) {
    core::RecordView view;
    view.topic = view.stream = "telemetry";
    view.value = std::as_bytes(std::span(value.data(), value.size()));
    view.timestamp = core::nanoseconds(kLogged);
    EXPECT_FALSE(stage_.handle(view, {at(), false}));
  }
  void read(ingest::FrameWriter& writer) {
    const auto bytes = writer.finish();
    ASSERT_TRUE(bytes);
    read(std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
  }
  static core::FrameHeader header(std::uint32_t rank) {
    core::FrameHeader out;
    out.run = kLoggingRun;
    out.rank = rank;
    out.mode = core::Mode::train;
    out.worker = 77 + rank;
    out.sequence = 1;
    return out;
  }
  void names(std::uint32_t rank) {
    std::vector<core::DictionaryEntry> entries(3);
    entries[0].hash = 1;
    entries[0].type = core::DictionaryType::scalar;
    entries[0].name = "loss";
    entries[1].hash = 2;
    entries[1].type = core::DictionaryType::scalar;
    entries[1].name = "accuracy";
    entries[2].hash = 77 + rank;
    entries[2].type = core::DictionaryType::worker;
    entries[2].name = "trainer";
    ingest::FrameWriter writer;
    read(writer.dictionary(header(rank), entries));
  }
  void values(std::uint32_t rank, double loss) {
    const std::array rows{core::ScalarRow{1, 5, 5, core::nanoseconds(kLogged), loss, 0},
                          core::ScalarRow{2, 5, 5, core::nanoseconds(kLogged), 0.9, 0}};
    ingest::FrameWriter writer;
    read(writer.scalars(header(rank), rows));
  }
  std::vector<std::string> shown() {
    std::vector<std::string> out;
    for (const auto& one : scalars_.newest("a", kLogged)) {
      out.push_back(one.job + " " + one.worker + " " + std::to_string(one.rank) + " " + one.name +
                    " " + std::to_string(one.step) + " " + std::to_string(one.value));
    }
    return out;
  }

  actions::TrainingScalars scalars_;
  core::NullTelemetry telemetry_;
  ScalarsStage stage_{scalars_, [](const core::RunUid&) { return std::string("digits"); },
                      telemetry_};
};

TEST_F(ScalarsStageTest, FramesByTheNamesOfTheirDictionary) {
  values(0, 0.5);
  EXPECT_THAT(shown(), IsEmpty()) << "nobody has told its name yet";
  names(0);
  values(0, 0.25);
  EXPECT_THAT(shown(), ElementsAre("digits trainer 0 loss 5 0.250000"));
  values(1, 0.75);
  EXPECT_THAT(shown(),
              ElementsAre("digits trainer 0 loss 5 0.250000", "digits worker_1 1 loss 5 0.750000"))
      << "names are those of the run; of a worker without one, its rank";
}

TEST_F(ScalarsStageTest, JsonOfAnyProducer) {
  read(R"({"run":"r","job":"llm","name":"loss","value":0.5,"step":12})");
  read(R"({"run":"r","job":"llm","name":"other","value":0.5,"step":12})");
  EXPECT_THAT(shown(), ElementsAre("llm worker_0 0 loss 12 0.500000"));
}

TEST_F(ScalarsStageTest, WhatCannotBeReadAndNodesChangeNothing) {
  names(0);
  read("TCSN");
  read("TCSN garbage that is longer than a header begins");
  read("{");
  read("");
  values(core::kNodeAgentRank, 1);
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(ScalarsStageTest, ALeaderThatBeginsAnewForgets) {
  names(0);
  values(0, 0.5);
  EXPECT_TRUE(stage_.open(at()));
  EXPECT_THAT(shown(), IsEmpty());
}

TEST_F(ScalarsStageTest, ItReadsOnlyWhatComesAndOnlyAsTheLeader) {
  const StageWiring& wiring = stage_.wiring();
  EXPECT_TRUE(wiring.newest_only);
  EXPECT_TRUE(wiring.leader);
  EXPECT_FALSE(wiring.writes);
  EXPECT_THAT(wiring.topics, ElementsAre(core::topic::kTelemetry));
}

}  // namespace
}  // namespace tocsin::app
