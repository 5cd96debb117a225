// Readers while runs start and end: none fails, and each sees a whole state (U04).
#include <atomic>
#include <thread>
#include <vector>

#include "tests/unit/insights/series_folder.h"

namespace tocsin::insights {
namespace {

constexpr std::uint64_t kRuns = 3'000;  // 50 a second for a minute
constexpr std::uint64_t kOfACommit = 50;
constexpr std::int64_t kSteps = 20;

class StoreReadersTest : public SeriesFolder {
 protected:
  [[nodiscard]] std::string events() const { return folder_ / "insights.db"; }
  static core::RunUid numbered(std::uint64_t at) {
    core::RunUid out;
    for (std::size_t k = 0; k < 8; ++k)
      out.bytes[15 - k] = static_cast<std::uint8_t>(at >> (8 * k));
    return out;
  }
  static core::JobEvent job(std::uint64_t at, core::JobPhase phase) {
    core::JobEvent out;
    out.phase = phase;
    out.run.uid = numbered(at);
    out.run.job = "many";
    out.time = core::WallTime(std::chrono::seconds(1'000'000 + at));
    return out;
  }
  void write_all() {
    SetAside moved;
    auto runs = EventWriter::open(events(), "here", moved);
    auto curves = writer();
    ASSERT_TRUE(runs);
    for (std::uint64_t at = 1; at <= kRuns; ++at) {
      KeptRecord kept;
      kept.offset = static_cast<std::int64_t>(at);
      (*runs)->saw(kept, job(at, core::JobPhase::started));
      (*runs)->saw(kept, job(at, core::JobPhase::ended));
      SegmentOf of = segment();
      of.run = numbered(at);
      curves->heard(of.run, static_cast<std::int64_t>(at));
      curves->name(of.run, FamilyKind::scalar, {5, "loss", core::Role::loss, "", -1});
      for (std::int64_t x = 0; x < kSteps; ++x) add(*curves, x, 1.0, of);
      if (at % kOfACommit != 0) continue;
      // Curves first: whoever sees a run sees its curve.
      ASSERT_TRUE(curves->commit({}));
      ASSERT_TRUE((*runs)->commit({}));
    }
  }
};

TEST_F(StoreReadersTest, NoReadFailsWhileFiftyRunsStartAndEndPerCommit) {
  {
    SetAside moved;
    ASSERT_TRUE(EventWriter::open(events(), "here", moved));
  }
  writer();
  std::atomic<bool> done = false;
  std::atomic<std::int64_t> reads = 0;
  std::atomic<std::int64_t> failures = 0;
  std::vector<std::thread> readers;
  for (int k = 0; k < 3; ++k) {
    readers.emplace_back([&] {
      while (!done) {
        ++reads;
        auto runs = EventReader::open(events());
        if (!runs) {
          ++failures;
          continue;
        }
        const auto lines = (*runs)->runs(std::nullopt, 100);
        if (!(*runs)->failure()) ++failures;
        if (lines.empty()) continue;
        if (lines.size() % kOfACommit != 0) ++failures;  // half a transaction was seen
        auto curves = SeriesReader::open(path());
        if (!curves) {
          ++failures;
          continue;
        }
        SeriesAsk ask = asked();
        ask.run = lines.front().uid;
        const auto answer = ask_series(**curves, ask);
        const bool whole = answer && answer->lines.size() == 1 &&
                           answer->lines[0].points.size() == static_cast<std::size_t>(kSteps);
        if (!whole || !(*curves)->failure()) ++failures;
      }
    });
  }
  write_all();
  done = true;
  for (std::thread& one : readers) one.join();
  EXPECT_EQ(failures, 0) << "of " << reads;
  EXPECT_GT(reads, 30);
  EXPECT_EQ((*EventReader::open(events()))->size().runs, static_cast<std::int64_t>(kRuns));
}

}  // namespace
}  // namespace tocsin::insights
