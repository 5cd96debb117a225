// What the writer refuses, that it keeps its buffer, and that whatever it writes is read back.
#include "ingest/wire/frame_writer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tests/unit/ingest/frame_fixture.h"

namespace tocsin::ingest {
namespace {

using namespace fixture;

core::Code code_of(FrameWriter& writer) {
  const auto bytes = writer.finish();
  return bytes ? core::Code::internal : bytes.error().code;
}

TEST(FrameWriter, RefusesToFinishWhatWasNeverStarted) {
  FrameWriter writer;
  EXPECT_EQ(code_of(writer), core::Code::invalid_argument);
}

TEST(FrameWriter, FillsARecordUpToTheCapAndNotBeyond) {
  FrameWriter writer;
  const std::size_t most = (kMaxRecordBytes - core::kFrameHeaderBytes) / sizeof(core::SummaryRow);
  std::vector<core::SummaryRow> rows(most, summary_row());
  EXPECT_TRUE(writer.summary(header(), rows).finish());
  rows.push_back(summary_row());
  EXPECT_EQ(code_of(writer.summary(header(), rows)), core::Code::resource_exhausted);
  EXPECT_TRUE(writer.step_ends(header(), {}).finish()) << "the next frame starts afresh";
}

TEST(FrameWriter, RefusesABodyBeyondTheCapWithoutKeepingIt) {
  FrameWriter writer;
  const std::string large(kMaxRecordBytes, ' ');
  EXPECT_EQ(code_of(writer.lifecycle(header(), large)), core::Code::resource_exhausted);
  EXPECT_EQ(
      code_of(
          writer.summary(header(), {}).extension(9, bytes_of(large)).extension(9, bytes_of(large))),
      core::Code::resource_exhausted);
}

TEST(FrameWriter, RefusesExtensionsOfRowsThatDoNotExist) {
  FrameWriter writer;
  const core::SummaryRow row = summary_row();
  const std::array<std::uint32_t, 1> second{1};
  const std::array<std::uint32_t, 2> twice{0, 0};
  const std::array<double, 1> value{1};
  const std::array<double, 2> values{1, 2};
  EXPECT_EQ(code_of(writer.summary(header(), {&row, 1})
                        .sparse_column(core::SparseStat::median, {}, second, value)),
            core::Code::invalid_argument);
  EXPECT_EQ(code_of(writer.summary(header(), {&row, 1})
                        .sparse_column(core::SparseStat::median, {}, twice, values)),
            core::Code::invalid_argument);
  EXPECT_EQ(code_of(writer.summary(header(), {&row, 1}).vector(32, 1, {}, value)),
            core::Code::invalid_argument);
  EXPECT_EQ(code_of(writer.lifecycle(header(), "{}").extension(9, {})),
            core::Code::invalid_argument);
}

TEST(FrameWriter, DoesNotMoveItsBufferOnceWarm) {
  FrameWriter writer;
  const std::vector<core::SummaryRow> rows(500, summary_row());
  const std::byte* const first = writer.summary(header(), rows).finish()->data();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(writer.summary(header(), rows).finish()->data(), first);
    EXPECT_EQ(writer.step_ends(header(), {}).finish()->data(), first);
  }
}

TEST(FrameWriter, NeverPutsTheInternalFlagOnTheWire) {
  core::FrameHeader from = header();
  from.flags = core::frame_flag::kUnsequenced | core::frame_flag::kDegraded;
  FrameWriter writer;
  const Bytes frame = finished(writer.step_ends(from, {}));
  core::FrameHeader read;
  std::memcpy(&read, frame.data(), sizeof read);
  EXPECT_EQ(read.flags, core::frame_flag::kDegraded);
}

/// Rows of any bits: also NaN payloads, infinities and denormals must survive.
template <typename Row>
std::vector<Row> any_rows() {
  const auto count = *rc::gen::inRange<std::size_t>(0, 40);
  std::vector<Row> rows(count);
  for (Row& row : rows) {
    for (std::size_t k = 0; k < sizeof(Row) / 8; ++k) {
      const auto bits = *rc::gen::arbitrary<std::uint64_t>();
      std::memcpy(reinterpret_cast<std::byte*>(&row) + k * 8, &bits, 8);
    }
  }
  return rows;
}

template <typename Row, typename Get>
void expect_rows(const Bytes& bytes, const std::vector<Row>& rows, Get get) {
  const Decoded decoded = decode_frame(bytes);
  RC_ASSERT(static_cast<bool>(decoded));
  RC_ASSERT(decoded.frame().rows() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row read = get(decoded.frame(), i);
    RC_ASSERT(std::memcmp(&read, &rows[i], sizeof(Row)) == 0);
  }
}

TEST(FrameProperty, VectorsComeBackBitForBitAndOnlyThoseThatWereSent) {
  EXPECT_TRUE(rc::check([] {
    struct Sent {
      std::uint16_t stat;
      std::uint32_t row;
      std::vector<double> parameters;
      std::vector<double> values;
    };
    const auto numbers = [](std::size_t most) {
      std::vector<double> out(*rc::gen::inRange<std::size_t>(0, most));
      for (double& x : out) x = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
      return out;
    };
    const std::vector<core::SummaryRow> rows(*rc::gen::inRange<std::size_t>(1, 5), summary_row());
    FrameWriter writer;
    writer.summary(header(), rows);
    std::vector<Sent> sent(*rc::gen::inRange<std::size_t>(0, 6));
    for (Sent& one : sent) {
      one = {*rc::gen::arbitrary<std::uint16_t>(),
             *rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(rows.size())),
             numbers(4), numbers(9)};
      writer.vector(one.stat, one.row, one.parameters, one.values);
      writer.extension(9, bytes_of("between"));
    }
    const Bytes bytes = finished(writer);
    const Decoded decoded = decode_frame(bytes);
    RC_ASSERT(static_cast<bool>(decoded));
    std::size_t at = 0;
    decoded.frame().vectors([&](const core::SparseVector& vector) {
      RC_ASSERT(at < sent.size());
      const Sent& one = sent[at++];
      RC_ASSERT(static_cast<std::uint16_t>(vector.stat) == one.stat && vector.row == one.row);
      const auto same = [](std::span<const std::byte> read, const std::vector<double>& written) {
        const auto as_sent = std::as_bytes(std::span(written));
        return std::equal(read.begin(), read.end(), as_sent.begin(), as_sent.end());
      };
      RC_ASSERT(same(vector.params_bytes, one.parameters));
      RC_ASSERT(same(vector.value_bytes, one.values));
    });
    RC_ASSERT(at == sent.size());
  }));
}

TEST(FrameProperty, RowsOfEveryKindComeBackBitForBit) {
  EXPECT_TRUE(rc::check([] {
    FrameWriter writer;
    const auto summaries = any_rows<core::SummaryRow>();
    expect_rows(finished(writer.summary(header(), summaries)), summaries,
                [](const auto& frame, std::size_t i) { return frame.summary(i); });
    const auto scalars = any_rows<core::ScalarRow>();
    expect_rows(finished(writer.scalars(header(), scalars)), scalars,
                [](const auto& frame, std::size_t i) { return frame.scalar(i); });
    const auto ends = any_rows<core::StepEndRow>();
    expect_rows(finished(writer.step_ends(header(), ends)), ends,
                [](const auto& frame, std::size_t i) { return frame.step_end(i); });
    const auto samples = any_rows<core::SystemRow>();
    expect_rows(finished(writer.system(header(), samples)), samples,
                [](const auto& frame, std::size_t i) { return frame.system(i); });
    const auto spans = any_rows<core::SpanRow>();
    expect_rows(finished(writer.spans(header(), spans)), spans,
                [](const auto& frame, std::size_t i) { return frame.span(i); });
  }));
}

TEST(FrameProperty, DictionariesComeBack) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::string, std::string>>& texts) {
    const std::array<std::int64_t, 2> dims{7, -1};
    std::vector<core::DictionaryEntry> entries;
    for (const auto& [name, attrs] : texts) {
      core::DictionaryEntry entry;
      entry.hash = core::name_hash(name);
      entry.name = name;
      entry.attrs = attrs;
      if (name.size() % 2 == 0) entry.dims_bytes = std::as_bytes(std::span(dims));
      entries.push_back(entry);
    }
    FrameWriter writer;
    const Bytes bytes = finished(writer.dictionary(header(), entries));
    const Decoded decoded = decode_frame(bytes);
    RC_ASSERT(static_cast<bool>(decoded));
    std::size_t at = 0;
    for_each_dictionary_entry(decoded.frame(), [&](const core::DictionaryEntry& entry) {
      RC_ASSERT(entry.name == entries[at].name);
      RC_ASSERT(entry.attrs == entries[at].attrs);
      RC_ASSERT(entry.dims_bytes.size() == entries[at].dims_bytes.size());
      ++at;
    });
    RC_ASSERT(at == entries.size());
  }));
}

TEST(FrameProperty, AnyChangeWithARightCrcIsReadSafelyOrRefused) {
  const Bytes good = read_data("wire/summary_extended.bin");
  EXPECT_TRUE(rc::check([&good] {
    Bytes bytes = good;
    const auto changes = *rc::gen::inRange(1, 4);
    for (int i = 0; i < changes; ++i) {
      bytes[*rc::gen::inRange<std::size_t>(8, bytes.size())] =
          static_cast<std::byte>(*rc::gen::arbitrary<std::uint8_t>());
    }
    bytes = sealed(bytes);
    const Decoded decoded = decode_frame(bytes);
    if (!decoded) return;
    const core::FrameView& frame = decoded.frame();
    std::uint64_t sum = 0;  // touch all there is; the sanitizers watch
    frame.extensions([&](std::uint16_t tag, std::span<const std::byte> payload) {
      sum += tag;
      for (const std::byte byte : payload) sum += std::to_integer<std::uint64_t>(byte);
    });
    if (frame.header().kind == core::FrameKind::summary) {
      frame.sparse_columns([&](const core::SparseColumn& column) {
        for (std::size_t i = 0; i < column.size(); ++i) {
          sum += frame.summary(column.row(i)).count;
          RC_ASSERT(column.row(i) < frame.rows());
        }
      });
    }
    RC_CLASSIFY(sum != 0);
  }));
}

}  // namespace
}  // namespace tocsin::ingest
