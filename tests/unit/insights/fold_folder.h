// Frames of agents and workers into a store, as the feed brings them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ingest/ingest.h"
#include "tests/unit/insights/series_folder.h"

namespace tocsin::insights {

class FoldFolder : public SeriesFolder {
 protected:
  struct Folds {
    SystemFold samples;
    SpanFold spans;
  };

  static core::FrameHeader agent(const std::string& node = "n7", std::uint64_t incarnation = 1) {
    core::FrameHeader out;
    out.run = run();
    out.rank = core::kNodeAgentRank;
    out.worker = core::name_hash(node);
    out.incarnation = incarnation;
    return out;
  }
  static core::FrameHeader worker(std::uint32_t rank = 0) {
    core::FrameHeader out;
    out.run = run();
    out.rank = rank;
    out.attempt = 1;
    out.worker = core::name_hash("worker_" + std::to_string(rank));
    out.incarnation = 1;
    out.mode = core::Mode::train;
    return out;
  }
  void take(const core::Result<std::span<const std::byte>>& frame) {
    ASSERT_TRUE(frame);
    core::RecordView record;
    record.topic = "telemetry";
    record.value = *frame;
    const auto failed = ingest::decode_telemetry(
        record, json_, [this](const core::FrameView& view, const core::FrameBody& body) {
          folds_.samples.take(view, body, now_, *store_);
          folds_.spans.take(view, body, *store_);
          fold_frame(view, body, *store_);
        });
    ASSERT_FALSE(failed);
  }
  void dictionary(core::FrameHeader header,
                  const std::vector<std::pair<core::DictionaryType, std::string>>& names) {
    header.sequence = ++sequence_;
    std::vector<core::DictionaryEntry> entries;
    for (const auto& [type, text] : names) {
      core::DictionaryEntry entry;
      entry.type = type;
      entry.hash = core::name_hash(text);
      entry.name = text;
      entries.push_back(entry);
    }
    take(frames_.dictionary(header, entries).finish());
  }
  struct Reading {
    std::string series;
    double value = 0;
    bool counter = false;
  };
  /// One sweep at `millis`; rows of a frame as many as `frame`.
  void sweep(core::FrameHeader header, std::int64_t millis, const std::vector<Reading>& readings,
             std::size_t frame = 500) {
    std::vector<core::SystemRow> rows;
    const std::int64_t time = millis * 1'000'000;
    const auto send = [&] {
      header.time = time;
      header.sequence = ++sequence_;
      take(frames_.system(header, rows).finish());
      rows.clear();
    };
    for (const Reading& one : readings) {
      rows.push_back({core::name_hash(one.series), time, one.value, one.counter ? 1U : 0U});
      if (rows.size() == frame) send();
    }
    if (!rows.empty()) send();
  }
  void spans(core::FrameHeader header, const std::vector<core::SpanRow>& rows) {
    header.sequence = ++sequence_;
    header.time = rows.back().start;
    take(frames_.spans(header, rows).finish());
  }
  static core::SpanRow span(const std::string& name, const std::string& track, std::int64_t start,
                            std::int64_t nanos, std::int64_t step) {
    return {core::name_hash(name), core::name_hash(track), start, nanos, step, 0, 0};
  }
  void step_end(core::FrameHeader header, std::int64_t step, std::int64_t start, std::int64_t end) {
    header.sequence = ++sequence_;
    header.time = end;
    const core::StepEndRow row{step, step, start, end, 1, 0};
    take(frames_.step_ends(header, std::span(&row, 1)).finish());
  }
  void commit() {
    folds_.samples.settle(now_, *store_);
    folds_.spans.settle(*store_);
    ASSERT_TRUE(store_->commit({}));
  }
  /// As a new process does after kill -9.
  void restart() {
    store_ = nullptr;
    folds_ = Folds();
    store_ = writer();
  }
  void rest() { now_ += std::chrono::seconds(1); }
  [[nodiscard]] SystemAnswer system(const std::string& name, std::int64_t points = 5000) {
    SystemAsk ask;
    ask.run = core::to_text(run());
    ask.name = name;
    ask.points = points;
    auto answer = ask_system(*reader(), ask);
    EXPECT_TRUE(answer);
    return answer ? *answer : SystemAnswer();
  }

  std::unique_ptr<SeriesWriter> store_ = writer();
  Folds folds_;
  core::Duration now_ = std::chrono::seconds(10);
  ingest::FrameWriter frames_;
  ingest::JsonScalarDecoder json_;
  std::uint64_t sequence_ = 0;
};

}  // namespace tocsin::insights
