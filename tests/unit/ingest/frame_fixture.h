// The run, header and frames of the published vectors (docs/wire.md), and small byte helpers.
#pragma once

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/frame.h"
#include "core/identity.h"
#include "ingest/ingest.h"

namespace tocsin::ingest::fixture {

using Bytes = std::vector<std::byte>;

inline constexpr std::int64_t kTime = 1767323045678000000;
inline constexpr std::uint64_t kIncarnation = 1767320000000000000;

inline core::RunUid run() { return core::run_uid_for("digits", "exploding"); }

/// Header of the vectors; the writer adds kind and lengths.
inline core::FrameHeader header(std::uint64_t sequence = 9001) {
  core::FrameHeader out;
  out.mode = core::Mode::train;
  out.run = run();
  out.attempt = 1;
  out.rank = 0;
  out.world_size = 1;
  out.step = 412;
  out.global_step = 437;
  out.time = kTime;
  out.sequence = sequence;
  out.incarnation = kIncarnation;
  out.worker = core::name_hash("worker_0");
  return out;
}

inline core::StepEndRow step_end() { return {412, 437, kTime - 50'000'000, kTime, 1, 0}; }

/// x = [1, -2, 0, 3] of gradient/conv1.weight.
inline core::SummaryRow summary_row() {
  core::SummaryRow row;
  row.name = core::name_hash("gradient/conv1.weight");
  row.count = 4;
  row.sum = 2;
  row.sumsq = 14;
  row.m2 = 13;
  row.abs_sum = 6;
  row.min = -2;
  row.max = 3;
  row.zero = 1;
  row.negative = 1;
  row.meta = 0x301;
  return row;
}

inline Bytes copy(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

inline Bytes finished(FrameWriter& writer) {
  const auto bytes = writer.finish();
  return bytes ? copy(*bytes) : Bytes{};
}

inline Bytes step_end_frame() {
  FrameWriter writer;
  const core::StepEndRow row = step_end();
  writer.step_ends(header(), {&row, 1});
  return finished(writer);
}

inline Bytes summary_frame() {
  FrameWriter writer;
  const core::SummaryRow row = summary_row();
  writer.summary(header(9000), {&row, 1});
  return finished(writer);
}

inline std::string hex(std::span<const std::byte> bytes) {
  return core::hex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

template <typename T>
void poke(Bytes& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// Makes the CRC right again after a change.
inline Bytes sealed(Bytes bytes) {
  poke(bytes, 20, std::uint32_t{0});
  poke(bytes, 20, crc32c(bytes));
  return bytes;
}

/// A file below tests/data; tests run in the project's root.
inline Bytes read_data(const std::string& name) {
  std::ifstream file("tests/data/" + name, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace tocsin::ingest::fixture
