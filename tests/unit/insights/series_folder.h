// A store of series in a folder of its own, and values to write into it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "insights/insights.h"

namespace tocsin::insights {

class SeriesFolder : public ::testing::Test {
 protected:
  SeriesFolder() {
    folder_ = std::filesystem::temp_directory_path() / ("series-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~SeriesFolder() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return folder_ / "curves.db"; }
  std::unique_ptr<SeriesWriter> writer() {
    SetAside moved;
    auto made = SeriesWriter::open(path(), "here", moved);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? std::move(*made) : nullptr;
  }
  std::unique_ptr<SeriesReader> reader() {
    auto made = SeriesReader::open(path());
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? std::move(*made) : nullptr;
  }
  static core::RunUid run(std::uint8_t last = 1) {
    core::RunUid out;
    out.bytes.back() = last;
    return out;
  }
  static SegmentOf segment(std::uint64_t incarnation = 1, std::uint64_t worker = 9) {
    return {run(), worker, incarnation, 1, static_cast<std::uint32_t>(worker - 9)};
  }
  static void name(SeriesWriter& store, std::uint64_t hash = 5, const std::string& text = "loss") {
    store.name(run(), FamilyKind::scalar, {hash, text, core::Role::loss, "", -1});
  }
  static void add(SeriesWriter& store, std::int64_t x, double value,
                  const SegmentOf& of = segment(), std::uint64_t hash = 5) {
    const std::array<double, 2> values{value, 1e15 + static_cast<double>(x) * 1e6};
    store.add(of, FamilyKind::scalar, hash, core::Mode::train, x, values);
  }
  static SeriesAsk asked(std::int64_t points = 1000) {
    SeriesAsk out;
    out.run = core::to_text(run());
    out.name = "loss";
    out.points = points;
    return out;
  }

  std::filesystem::path folder_;
};

}  // namespace tocsin::insights
