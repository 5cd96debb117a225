// Decoding telemetry: the whole way from a record's bytes to validated rows, its parts, and JSON
// beside it. The frame of 100 rows is the usual one. Compare: `Touch` reads every 8th byte of the
// same records, `Checksum` is the CRC32C alone. Run: decode_bench ; bytes and rows are per second
// of one core.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "ingest/ingest.h"

namespace tocsin::ingest {
namespace {

constexpr std::size_t kRecords = 256;  // a few megabytes: out of L2, as records from a queue are

std::vector<core::SummaryRow> rows_of(std::size_t count) {
  std::vector<core::SummaryRow> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    rows[i].name = core::name_hash("gradient/layer" + std::to_string(i));
    rows[i].count = 1000 + i;
    rows[i].sumsq = static_cast<double>(i) * 0.5;
    rows[i].meta = core::meta::make(core::Dtype::f32, core::Role::gradient);
  }
  return rows;
}

std::vector<std::vector<std::byte>> frames_of(std::size_t rows) {
  std::vector<std::vector<std::byte>> out;
  FrameWriter writer;
  core::FrameHeader header;
  header.mode = core::Mode::train;
  const auto content = rows_of(rows);
  for (std::size_t i = 0; i < kRecords; ++i) {
    header.sequence = i;
    const auto bytes = writer.summary(header, content).finish();
    if (bytes) out.emplace_back(bytes->begin(), bytes->end());
  }
  return out;
}

void count_rates(benchmark::State& state, std::size_t bytes, std::size_t rows) {
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
  state.SetItemsProcessed(static_cast<std::int64_t>(rows) * state.iterations());
}

void Touch(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  const auto frames = frames_of(rows);
  std::size_t at = 0;
  for (auto _ : state) {
    const auto& frame = frames[at++ % frames.size()];
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i + 8 <= frame.size(); i += 8) {
      sum += std::to_integer<std::uint64_t>(frame[i]);
    }
    benchmark::DoNotOptimize(sum);
  }
  count_rates(state, frames[0].size(), rows);
}
BENCHMARK(Touch)->Arg(100)->Arg(500);

void Checksum(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  const auto frames = frames_of(rows);
  std::size_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(crc32c(frames[at++ % frames.size()]));
  count_rates(state, frames[0].size(), rows);
}
BENCHMARK(Checksum)->Arg(100)->Arg(500);

/// Validation alone, then with one column read, as a rule over norms does.
void Decode(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  const auto frames = frames_of(rows);
  std::size_t at = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(static_cast<bool>(decode_frame(frames[at++ % frames.size()])));
  count_rates(state, frames[0].size(), rows);
}
BENCHMARK(Decode)->Arg(1)->Arg(100)->Arg(500);

void DecodeAndReadRows(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  const auto frames = frames_of(rows);
  std::size_t at = 0;
  for (auto _ : state) {
    const Decoded decoded = decode_frame(frames[at++ % frames.size()]);
    double sum = 0;
    for (std::size_t i = 0; i < decoded.frame().rows(); ++i) {
      const core::SummaryRow row = decoded.frame().summary(i);
      sum += row.sumsq + static_cast<double>(row.count + row.nan);
    }
    benchmark::DoNotOptimize(sum);
  }
  count_rates(state, frames[0].size(), rows);
}
BENCHMARK(DecodeAndReadRows)->Arg(100)->Arg(500);

void Encode(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  const auto content = rows_of(rows);
  FrameWriter writer;
  const core::FrameHeader header;
  std::size_t bytes = 0;
  for (auto _ : state) {
    const auto frame = writer.summary(header, content).finish();
    bytes = frame->size();
    benchmark::DoNotOptimize(frame->data());
  }
  count_rates(state, bytes, rows);
}
BENCHMARK(Encode)->Arg(1)->Arg(100)->Arg(500);

/// Scalars as JSON, one record with `range` metrics; the same scalars as a frame below.
void DecodeJson(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  std::string json = "[";
  for (std::size_t i = 0; i < rows; ++i) {
    json +=
        R"({"run":"4e3046d4-8c1f-5278-82e3-ea3595bc5999","name":"loss","value":0.3125,"step":)" +
        std::to_string(i) + "},";
  }
  json.back() = ']';
  JsonScalarDecoder decoder;
  for (auto _ : state) {
    std::size_t seen = 0;
    const auto failure =
        decoder.decode(json, 0, [&](const core::FrameView& frame, const core::FrameBody& /*body*/) {
          seen += frame.rows();
        });
    benchmark::DoNotOptimize(seen);
    if (failure) state.SkipWithError("refused");
  }
  count_rates(state, json.size(), rows);
}
BENCHMARK(DecodeJson)->Arg(1)->Arg(100);

void DecodeScalarFrame(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(0));
  const std::vector<core::ScalarRow> scalars(rows);
  FrameWriter writer;
  const auto frame = writer.scalars({}, scalars).finish();
  for (auto _ : state) benchmark::DoNotOptimize(static_cast<bool>(decode_frame(*frame)));
  count_rates(state, frame->size(), rows);
}
BENCHMARK(DecodeScalarFrame)->Arg(1)->Arg(100);

}  // namespace
}  // namespace tocsin::ingest

BENCHMARK_MAIN();
