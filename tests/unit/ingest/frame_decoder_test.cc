// Each way in which a record can fail to be a frame, by the smallest change that makes it so.
#include "ingest/wire/frame_decoder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "tests/unit/ingest/frame_fixture.h"

namespace tocsin::ingest {
namespace {

using namespace fixture;

/// Name of the failure, "ok" for a frame.
std::string verdict(std::span<const std::byte> bytes) {
  const Decoded decoded = decode_frame(bytes);
  return decoded ? "ok" : std::string(to_string(decoded.error()));
}

/// The step-end frame with one field changed and the CRC made right.
template <typename T>
std::string verdict_with(std::size_t at, T value) {
  Bytes frame = step_end_frame();
  poke(frame, at, value);
  return verdict(sealed(frame));
}

/// Header only: no rows, no body.
Bytes empty_frame() {
  FrameWriter writer;
  return finished(writer.step_ends(header(), {}));
}

TEST(FrameDecoder, ReadsWhatTheWriterWrote) {
  const Bytes bytes = step_end_frame();
  const Decoded decoded = decode_frame(bytes);
  ASSERT_TRUE(decoded);
  const core::StepEndRow row = decoded.frame().step_end(0);
  EXPECT_EQ(row.step, 412);
  EXPECT_EQ(row.global_step, 437);
  EXPECT_EQ(row.end - row.start, 50'000'000);
  EXPECT_EQ(decoded.frame().header().sequence, 9001u);
  EXPECT_EQ(decoded.frame().header().mode, core::Mode::train);
}

TEST(FrameDecoder, WithoutMagicItIsNoFrame) {
  EXPECT_EQ(verdict({}), "not_a_frame");
  EXPECT_EQ(verdict(bytes_of("TCS")), "not_a_frame");
  EXPECT_EQ(verdict(bytes_of("tcsn\1")), "not_a_frame");
  EXPECT_EQ(verdict_with(0, 'X'), "not_a_frame");
}

TEST(FrameDecoder, AnotherMajorIsSaidBeforeAnythingElse) {
  EXPECT_EQ(verdict(bytes_of("TCSN\2")), "unknown_major");
  EXPECT_EQ(verdict_with(4, std::uint8_t{0}), "unknown_major");
}

TEST(FrameDecoder, EveryProperPrefixIsTruncated) {
  const Bytes frame = step_end_frame();
  for (std::size_t size = 4; size < frame.size(); ++size) {
    EXPECT_EQ(verdict(std::span(frame).first(size)), "truncated") << size;
  }
}

TEST(FrameDecoder, HeaderLengthIsAtLeast112AndAMultipleOf8) {
  EXPECT_EQ(verdict_with(8, std::uint16_t{104}), "bad_length");
  EXPECT_EQ(verdict_with(8, std::uint16_t{113}), "bad_length");
}

TEST(FrameDecoder, BytesBehindTheFrameAreRefused) {
  Bytes frame = step_end_frame();
  frame.push_back(std::byte{0});
  EXPECT_EQ(verdict(frame), "bad_length");
}

TEST(FrameDecoder, RowsFitTheBody) {
  EXPECT_EQ(verdict_with(10, std::uint16_t{47}), "bad_length");  // stride no multiple of 8
  EXPECT_EQ(verdict_with(12, std::uint32_t{2}), "bad_length");   // two rows in the place of one
  EXPECT_EQ(verdict_with(12, std::uint32_t{0xFFFFFFFF}), "bad_length");
}

TEST(FrameDecoder, RowsAreAsWideAsTheirKind) {
  EXPECT_EQ(verdict_with(10, std::uint16_t{40}), "bad_length");
  EXPECT_EQ(verdict_with(6, std::uint8_t{1}), "bad_length");  // a summary row has 14 columns
}

/// A summary row of a reader that knows one column more than version 1.0.
struct LaterRow {
  core::SummaryRow first;
  double later = -1;
};

// Pinned, not derived from the structs: a struct that grows must not refuse who writes frames today.
TEST(FrameDecoder, TheLeastColumnsAreThoseOfTheFirstVersion) {
  EXPECT_EQ(core::least_columns(core::FrameKind::summary), 14U);
  EXPECT_EQ(core::least_columns(core::FrameKind::scalar), 6U);
  EXPECT_EQ(core::least_columns(core::FrameKind::step_end), 6U);
  EXPECT_EQ(core::least_columns(core::FrameKind::system), 4U);
  EXPECT_EQ(core::least_columns(core::FrameKind::span), 7U);
}

TEST(FrameDecoder, AReaderWithAFurtherColumnReadsFramesThatLackIt) {
  const Bytes stored = read_data("wire/summary.bin");
  const Decoded decoded = decode_frame(stored);
  ASSERT_TRUE(decoded);
  const auto row = decoded.frame().row<LaterRow>(0);
  EXPECT_EQ(row.first.sumsq, 14);
  EXPECT_EQ(row.first.meta, 0x301U);
  EXPECT_EQ(row.later, -1) << "what the writer did not know stays as it is";
}

TEST(FrameDecoder, AFurtherColumnIsReadByWhoKnowsItAndSkippedByWhoDoesNot) {
  const Bytes stored = read_data("wire/summary_evolved.bin");  // two columns more, two extensions
  const Decoded decoded = decode_frame(stored);
  ASSERT_TRUE(decoded);
  ASSERT_GT(decoded.frame().header().row_stride, sizeof(LaterRow));
  const auto later = decoded.frame().row<LaterRow>(0);
  EXPECT_EQ(later.later, decoded.frame().column<double>(14)[0]);
  const core::SummaryRow row = decoded.frame().summary(0);
  EXPECT_EQ(std::memcmp(&row, &later.first, sizeof row), 0);
  std::size_t extensions = 0;
  decoded.frame().extensions([&](std::uint16_t, std::span<const std::byte>) { ++extensions; });
  EXPECT_EQ(extensions, 2U) << "found behind all columns that the writer declared";
}

TEST(FrameDecoder, MoreThan65536RowsAreTooLarge) {
  FrameWriter writer;
  Bytes frame = finished(writer.dictionary(header(), {}));
  poke(frame, 12, std::uint32_t{65537});
  EXPECT_EQ(verdict(sealed(frame)), "too_large");
}

TEST(FrameDecoder, MoreThanAMebibyteIsTooLarge) {
  Bytes frame = empty_frame();
  const auto at_most = [&](std::size_t total) {
    Bytes large = frame;
    large.resize(total);
    poke(large, 6, core::FrameKind::snapshot);
    poke(large, 10, std::uint16_t{0});
    poke(large, 16, static_cast<std::uint32_t>(total - core::kFrameHeaderBytes));
    return verdict(sealed(large));
  };
  EXPECT_EQ(at_most(core::kMaxFrameBytes), "ok");
  EXPECT_EQ(at_most(core::kMaxFrameBytes + 8), "too_large");
}

TEST(FrameDecoder, EveryFlippedBitIsFound) {
  const Bytes good = summary_frame();
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_NE(verdict(bad), "ok") << bit;
  }
  Bytes bad = good;
  bad.back() ^= std::byte{1};
  EXPECT_EQ(verdict(bad), "bad_crc");
}

TEST(FrameDecoder, UnknownKindsAndModesAreRefused) {
  EXPECT_EQ(verdict_with(6, std::uint8_t{0}), "unknown_kind");
  EXPECT_EQ(verdict_with(6, std::uint8_t{10}), "unknown_kind");
  EXPECT_EQ(verdict_with(7, std::uint8_t{4}), "unknown_kind");
}

TEST(FrameDecoder, AFrameWithoutRowsIsAFrame) { EXPECT_EQ(verdict(empty_frame()), "ok"); }

TEST(FrameDecoder, NobodyClaimsToBeUnsequencedFromOutside) {
  Bytes frame = step_end_frame();
  poke(frame, 108, core::frame_flag::kUnsequenced | core::frame_flag::kFromSpool);
  frame = sealed(frame);
  const Decoded decoded = decode_frame(frame);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded.frame().header().flags, core::frame_flag::kFromSpool);
}

/// A summary frame of one row followed by raw bytes where the extensions are.
std::string verdict_of_extension(std::span<const std::byte> area) {
  Bytes frame = summary_frame();
  frame.insert(frame.end(), area.begin(), area.end());
  poke(frame, 16, static_cast<std::uint32_t>(frame.size() - core::kFrameHeaderBytes));
  return verdict(sealed(frame));
}

/// tag, 0, length, payload, padding.
Bytes extension_bytes(std::uint16_t tag, std::uint32_t length, const Bytes& payload) {
  Bytes out(8);
  poke(out, 0, tag);
  poke(out, 4, length);
  out.insert(out.end(), payload.begin(), payload.end());
  out.resize((out.size() + 7) & ~std::size_t{7});
  return out;
}

TEST(FrameDecoder, ExtensionsStayInsideTheFrame) {
  EXPECT_EQ(verdict_of_extension(extension_bytes(99, 5, Bytes(5))), "ok");
  EXPECT_EQ(verdict_of_extension(Bytes(4)), "bad_length");                          // half a head
  EXPECT_EQ(verdict_of_extension(extension_bytes(99, 9, Bytes(8))), "bad_length");  // one too far
  EXPECT_EQ(verdict_of_extension(extension_bytes(99, 0xFFFFFFFF, {})), "bad_length");
  EXPECT_EQ(verdict_of_extension(extension_bytes(99, 0xFFFFFFF9, {})), "bad_length");
}

/// Tag 1 with one row, that number, and room for `values` numbers.
std::string verdict_of_sparse(std::uint32_t m, std::uint32_t row, std::size_t values) {
  Bytes payload(8 + 8 + values * 8);
  poke(payload, 0, core::SparseStat::median);
  poke(payload, 4, m);
  poke(payload, 8, row);
  return verdict_of_extension(
      extension_bytes(1, static_cast<std::uint32_t>(payload.size()), payload));
}

TEST(FrameDecoder, SparseColumnsNameRowsThatExist) {
  EXPECT_EQ(verdict_of_sparse(1, 0, 1), "ok");
  EXPECT_EQ(verdict_of_sparse(1, 1, 1), "bad_length");  // the frame has one row
  EXPECT_EQ(verdict_of_sparse(1, 0, 0), "bad_length");  // no room for the value
  EXPECT_EQ(verdict_of_sparse(2, 0, 4), "bad_length");  // more rows than the frame
  EXPECT_EQ(verdict_of_sparse(0xFFFFFFFF, 0, 1), "bad_length");
  EXPECT_EQ(verdict_of_extension(extension_bytes(1, 4, Bytes(4))), "bad_length");
}

TEST(FrameDecoder, VectorsAndHistogramsFitTheirExtension) {
  Bytes vector(16);
  EXPECT_EQ(verdict_of_extension(extension_bytes(2, 16, vector)), "ok");
  poke(vector, 8, std::uint32_t{1});  // one value, no room
  EXPECT_EQ(verdict_of_extension(extension_bytes(2, 16, vector)), "bad_length");
  Bytes histogram(24);
  EXPECT_EQ(verdict_of_extension(extension_bytes(3, 24, histogram)), "ok");
  poke(histogram, 16, std::uint32_t{1});
  EXPECT_EQ(verdict_of_extension(extension_bytes(3, 24, histogram)), "bad_length");
  poke(histogram, 16, std::uint32_t{0});
  poke(histogram, 0, std::uint32_t{1});  // row 1 does not exist
  EXPECT_EQ(verdict_of_extension(extension_bytes(3, 24, histogram)), "bad_length");
}

Bytes dictionary_of_one() {
  core::DictionaryEntry entry;
  entry.hash = core::name_hash("loss");
  entry.type = core::DictionaryType::scalar;
  entry.name = "loss";
  FrameWriter writer;
  return finished(writer.dictionary(header(), {&entry, 1}));
}

TEST(FrameDecoder, DictionaryEntriesFitTheFrame) {
  constexpr std::size_t kEntry = core::kFrameHeaderBytes;
  Bytes frame = dictionary_of_one();
  EXPECT_EQ(verdict(frame), "ok");
  for (const std::size_t field : {std::size_t{12}, std::size_t{16}}) {  // name, attrs
    Bytes bad = frame;
    poke(bad, kEntry + field, std::uint32_t{0xFFFFFFFF});
    EXPECT_EQ(verdict(sealed(bad)), "bad_length");
  }
  Bytes bad = frame;
  poke(bad, kEntry + 11, std::uint8_t{255});
  EXPECT_EQ(verdict(sealed(bad)), "bad_length");
  poke(frame, 12, std::uint32_t{2});  // a second entry that is not there
  EXPECT_EQ(verdict(sealed(frame)), "bad_length");
}

TEST(FrameDecoder, DictionaryEntriesComeInOrder) {
  const Bytes stored = read_data("wire/dictionary.bin");
  const Decoded decoded = decode_frame(stored);
  ASSERT_TRUE(decoded);
  std::vector<std::string> names;
  std::size_t dims = 0;
  const std::size_t count =
      for_each_dictionary_entry(decoded.frame(), [&](const core::DictionaryEntry& entry) {
        EXPECT_EQ(entry.hash, core::name_hash(entry.name));
        names.emplace_back(entry.name);
        dims += entry.dims_bytes.size() / 8;
      });
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(dims, 4u);
  EXPECT_EQ(names, (std::vector<std::string>{"worker_0", "gradient/conv1.weight", "größe"}));
}

TEST(FrameDecoder, OtherKindsHaveNoDictionaryAndNoExtensions) {
  const Bytes step_ends = step_end_frame();
  EXPECT_EQ(for_each_dictionary_entry(decode_frame(step_ends).frame(),
                                      [](const core::DictionaryEntry&) { FAIL(); }),
            0u);
  EXPECT_FALSE(tensor_chunk(decode_frame(step_ends).frame()));
  const Bytes start = read_data("wire/lifecycle_start.bin");
  decode_frame(start).frame().extensions(
      [](std::uint16_t, std::span<const std::byte>) { FAIL() << "JSON is no extension"; });
}

TEST(FrameDecoder, ALifecycleHasOneRowAndNoStride) {
  Bytes frame = read_data("wire/lifecycle_end.bin");
  poke(frame, 12, std::uint32_t{2});
  EXPECT_EQ(verdict(sealed(frame)), "bad_length");
  poke(frame, 12, std::uint32_t{1});
  poke(frame, 10, std::uint16_t{8});
  EXPECT_EQ(verdict(sealed(frame)), "bad_length");
}

TEST(FrameDecoder, ATensorChunkLiesInsideItsTensor) {
  constexpr std::size_t kBody = core::kFrameHeaderBytes;
  const Bytes good = read_data("wire/tensor_chunk.bin");
  EXPECT_EQ(verdict(good), "ok");
  const auto with = [&](std::size_t at, auto value) {
    Bytes bad = good;
    poke(bad, kBody + at, value);
    return verdict(sealed(bad));
  };
  EXPECT_EQ(with(12, std::uint32_t{2}), "bad_length");   // chunk 2 of 2
  EXPECT_EQ(with(20, std::uint32_t{17}), "bad_length");  // more data than there is
  EXPECT_EQ(with(24, std::uint64_t{9}), "bad_length");   // ends behind the tensor
  EXPECT_EQ(with(24, ~std::uint64_t{0}), "bad_length");  // offset that wraps around
}

}  // namespace
}  // namespace tocsin::ingest
