// The published vectors of frame v1, and stored frames, written by the Python reference codec, that
// every later version must still read.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/unit/ingest/frame_fixture.h"

namespace tocsin::ingest {
namespace {

using namespace fixture;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(FrameVectors, CrcOfTheCheckStringIsTheKnownOne) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(FrameVectors, CrcGoesOnFromWhereItWas) {
  const std::string text(5000, 'x');
  const auto bytes = bytes_of(text);
  for (const std::size_t cut : {0u, 1u, 7u, 1700u, 3072u, 4999u}) {
    EXPECT_EQ(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))), crc32c(bytes)) << cut;
  }
}

TEST(FrameVectors, StepEndFrameIsThePublishedBytes) {
  EXPECT_EQ(hex(step_end_frame()),
            "5443534e0100030170003000010000003000000012e830bc4e3046d48c1f527882e3ea3595bc5999"
            "010000000000000001000000000001009c01000000000000b50100000000000080a7ff44f2ca8618"
            "2923000000000000008071242dc88618a7abbb73ad5a2a1600000000000000009c01000000000000"
            "b50100000000000000b70442f2ca861880a7ff44f2ca861801000000000000000000000000000000");
}

TEST(FrameVectors, SummaryFrameHasThePublishedLengthAndCrc) {
  const Bytes frame = summary_frame();
  EXPECT_EQ(frame.size(), 224u);
  const Decoded decoded = decode_frame(frame);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded.frame().header().crc, 0x9476a326u);
}

/// What this codec writes for a stored frame must be the bytes that the other codec wrote.
void expect_stored(const std::string& name, const Bytes& written) {
  EXPECT_EQ(hex(written), hex(read_data("wire/" + name + ".bin"))) << name;
}

TEST(FrameVectors, BothCodecsWriteTheSameColumns) {
  FrameWriter writer;
  expect_stored("step_end", step_end_frame());
  expect_stored("summary", summary_frame());
  const std::uint64_t loss = core::name_hash("loss");
  const std::array<core::ScalarRow, 2> scalars{
      {{loss, 411, 436, kTime - 1, 0.31, 0x402}, {loss, 412, 437, kTime, kInf, 0x402}}};
  expect_stored("scalar", finished(writer.scalars(header(9004), scalars)));
  const std::array<core::SystemRow, 2> samples{
      {{core::name_hash("system.cpu.utilization{cpu.logical_number=3,cpu.mode=user}"), kTime, 0.25,
        0},
       {core::name_hash("system.network.io{network.io.direction=receive}"), kTime, 12345.0, 1}}};
  expect_stored("system", finished(writer.system(header(9005), samples)));
  const std::array<core::SpanRow, 2> spans{
      {{core::name_hash("all_reduce"), core::name_hash("communication"), kTime, 1500, 412, 0, 0},
       {core::name_hash("epoch"), core::name_hash("phase"), kTime, -1, 412, 0, 0}}};
  expect_stored("span", finished(writer.spans(header(9006), spans)));
}

TEST(FrameVectors, BothCodecsWriteTheSameExtensions) {
  core::SummaryRow broken;
  broken.name = core::name_hash("conv1.weight");
  broken.count = 10;
  broken.sum = broken.sumsq = broken.m2 = broken.abs_sum = broken.min = broken.max = kNaN;
  broken.nan = 2;
  broken.posinf = 1;
  broken.neginf = 3;
  broken.zero = 1;
  broken.negative = 4;
  broken.meta = 0x301;
  core::SummaryRow third = summary_row();
  third.name = core::name_hash("gradient/fc1.weight");
  const std::array<core::SummaryRow, 3> rows{summary_row(), broken, third};

  FrameWriter writer;
  writer.summary(header(9002), rows)
      .sparse_column(core::SparseStat::median, {}, std::array<std::uint32_t, 2>{0, 2},
                     std::array<double, 2>{0.5, -1.5})
      .sparse_column(core::SparseStat::unit_inactive_count, std::array<double, 1>{0.25},
                     std::array<std::uint32_t, 1>{1}, std::array<double, 1>{7.0})
      .vector(32, 2, {}, std::array<double, 3>{1.0, 2.0, kInf})
      .histogram(0, 0, std::array<std::uint64_t, 3>{1, 0, 2}, -8, std::array<std::uint64_t, 1>{5})
      .extension(77, bytes_of("of a later version"));
  expect_stored("summary_extended", finished(writer));
}

TEST(FrameVectors, BothCodecsWriteTheSameVectorsOfARow) {
  core::SummaryRow labels = summary_row();
  labels.name = core::name_hash("labels");
  labels.meta = core::meta::make(core::Dtype::i64, core::Role::label);
  core::SummaryRow images = summary_row();
  images.name = core::name_hash("images");
  images.meta = core::meta::make(core::Dtype::f32, core::Role::input);
  const std::array<core::SummaryRow, 2> rows{labels, images};
  FrameWriter writer;
  writer.summary(header(9008), rows)
      .vector(36, 0, {}, std::array<double, 2>{990, 10})
      .vector(38, 0, {}, std::array<double, 6>{0, 0, 990, 1, 0, 10})
      .vector(35, 0, std::array<double, 2>{0, -100}, std::array<double, 2>{3, 1})
      .vector(34, 1, {}, {})
      .vector(32, 1, {}, std::array<double, 3>{kNaN, kInf, -0.0});
  expect_stored("summary_vectors", finished(writer));
}

TEST(FrameVectors, VectorsAreReadAsTheyWereStored) {
  const Bytes stored = read_data("wire/summary_vectors.bin");
  const Decoded decoded = decode_frame(stored);
  ASSERT_TRUE(decoded) << decoded.detail();
  std::string read;
  decoded.frame().vectors([&](const core::SparseVector& vector) {
    read += std::to_string(static_cast<int>(vector.stat)) + " of row " + std::to_string(vector.row);
    for (std::size_t i = 0; i < vector.params_bytes.size() / 8; ++i) {
      double parameter = 0;
      std::memcpy(&parameter, vector.params_bytes.data() + i * 8, 8);
      read += " (" + std::to_string(static_cast<int>(parameter)) + ")";
    }
    for (std::size_t i = 0; i < vector.size(); ++i) {
      const double x = vector.value(i);
      read += std::isnan(x)     ? " nan"
              : std::isinf(x)   ? " inf"
              : std::signbit(x) ? " -"
                                : " " + std::to_string(static_cast<int>(x));
    }
    read += "\n";
  });
  EXPECT_EQ(read,
            "36 of row 0 990 10\n"
            "38 of row 0 0 0 990 1 0 10\n"
            "35 of row 0 (0) (-100) 3 1\n"
            "34 of row 1\n"
            "32 of row 1 nan inf -\n");
}

TEST(FrameVectors, BothCodecsWriteTheSameDictionary) {
  const std::array<std::int64_t, 4> dims{32, 3, 3, 3};
  std::array<core::DictionaryEntry, 3> entries{};
  entries[0].type = core::DictionaryType::worker;
  entries[0].name = "worker_0";
  entries[1].name = "gradient/conv1.weight";
  entries[1].dtype = core::Dtype::f32;
  entries[1].role = core::Role::gradient;
  entries[1].dims_bytes = std::as_bytes(std::span(dims));
  entries[1].attrs = R"({"collections":["gradients"]})";
  entries[2].type = core::DictionaryType::scalar;
  entries[2].name = "größe";
  entries[2].dtype = core::Dtype::f64;
  entries[2].role = core::Role::metric;
  entries[2].attrs = R"({"direction":"min","unit":"m"})";
  for (auto& entry : entries) entry.hash = core::name_hash(entry.name);
  FrameWriter writer;
  expect_stored("dictionary", finished(writer.dictionary(header(9007), entries)));
}

TEST(FrameVectors, BothCodecsWriteTheSameTensorChunk) {
  const std::array<float, 4> data{1, 2, 3, 4};
  const std::array<std::int64_t, 2> dims{2, 3};
  TensorChunk chunk;
  chunk.name = core::name_hash("conv1.weight");
  chunk.dtype = core::Dtype::f32;
  chunk.chunks = 2;
  chunk.total_bytes = 24;
  chunk.dims_bytes = std::as_bytes(std::span(dims));
  chunk.data = std::as_bytes(std::span(data));
  FrameWriter writer;
  const Bytes frame = finished(writer.tensor_chunk(header(1), chunk));
  expect_stored("tensor_chunk", frame);
  const Decoded decoded = decode_frame(frame);
  ASSERT_TRUE(decoded);
  const auto read = tensor_chunk(decoded.frame());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->dims_bytes.size(), 16u);
  EXPECT_EQ(read->data.size(), 16u);
  EXPECT_EQ(read->total_bytes, 24u);
}

TEST(FrameVectors, BothCodecsWriteTheSameReferenceToATensor) {
  const std::array<std::int64_t, 1> dims{3};
  TensorChunk chunk;
  chunk.name = core::name_hash("conv1.weight");
  chunk.dtype = core::Dtype::bf16;
  chunk.total_bytes = 6;
  chunk.dims_bytes = std::as_bytes(std::span(dims));
  chunk.about = {0x104, "conv1.weight", "worker_0"};
  chunk.dataref = {160, 248, "s3://bucket/prefix/train-000000412.tcsn"};
  FrameWriter writer;
  const Bytes frame = finished(writer.tensor_chunk(header(2), chunk));
  expect_stored("tensor_reference", frame);
  const Decoded decoded = decode_frame(frame);
  ASSERT_TRUE(decoded);
  const auto read = tensor_chunk(decoded.frame());
  ASSERT_TRUE(read && read->about && read->dataref);
  EXPECT_EQ(read->about->name, "conv1.weight");
  EXPECT_EQ(read->about->worker, "worker_0");
  EXPECT_EQ(read->about->meta, 0x104u);
  EXPECT_EQ(read->dataref->offset, 160u);
  EXPECT_EQ(read->dataref->bytes, 248u);
  EXPECT_EQ(read->dataref->uri, "s3://bucket/prefix/train-000000412.tcsn");
}

TEST(FrameEvolution, ReadsALaterMinorWithALongerHeaderMoreColumnsAndUnknownTags) {
  const Bytes stored = read_data("wire/summary_evolved.bin");
  const Decoded decoded = decode_frame(stored);
  ASSERT_TRUE(decoded) << decoded.detail();
  const core::FrameView& frame = decoded.frame();
  EXPECT_EQ(frame.header().minor, 7);
  ASSERT_EQ(frame.rows(), 2u);
  EXPECT_EQ(frame.summary(0).sumsq, 14.0);
  EXPECT_EQ(frame.summary(1).count, 9u);
  EXPECT_EQ(frame.summary(1).name, core::name_hash("conv1.weight"));
  std::vector<double> products;
  frame.sparse_columns([&](const core::SparseColumn& column) {
    EXPECT_EQ(column.stat, core::SparseStat::prod);
    EXPECT_EQ(column.row(0), 1u);
    products.push_back(column.value(0));
  });
  EXPECT_EQ(products, std::vector<double>{42.0});
}

TEST(FrameEvolution, EveryStoredFrameIsStillRead) {
  for (const char* name :
       {"step_end", "summary", "summary_extended", "summary_vectors", "summary_evolved", "scalar",
        "system", "span", "dictionary", "lifecycle_start", "lifecycle_end", "tensor_chunk",
        "tensor_reference"}) {
    const Bytes stored = read_data(std::string("wire/") + name + ".bin");
    ASSERT_FALSE(stored.empty()) << name;
    const Decoded decoded = decode_frame(stored);
    EXPECT_TRUE(decoded) << name << ": " << decoded.detail();
    EXPECT_EQ(decoded.frame().header().run, run()) << name;
    EXPECT_EQ(decoded.frame().header().worker, core::name_hash("worker_0")) << name;
  }
}

TEST(FrameVectors, ReadsTheVectorsOfAStoredFrame) {
  const Bytes stored = read_data("wire/summary_extended.bin");
  const Decoded decoded = decode_frame(stored);
  ASSERT_TRUE(decoded);
  std::size_t found = 0;
  decoded.frame().vectors([&](const core::SparseVector& one) {
    ++found;
    EXPECT_EQ(static_cast<int>(one.stat), 32) << "channel_sum";
    EXPECT_EQ(one.row, 2u);
    EXPECT_TRUE(one.params_bytes.empty());
    ASSERT_EQ(one.size(), 3u);
    EXPECT_EQ(one.value(0), 1.0);
    EXPECT_EQ(one.value(1), 2.0);
    EXPECT_EQ(one.value(2), kInf);
  });
  EXPECT_EQ(found, 1u) << "other extensions are no vectors";
}

TEST(FrameVectors, ParametersTravelWithAVector) {
  FrameWriter writer;
  const std::array<core::SummaryRow, 2> rows{};
  const std::array<double, 2> tokens{0, 3};
  const std::array<double, 2> counts{7, 1};
  const Bytes frame = finished(writer.summary(header(), rows).vector(35, 1, tokens, counts));
  const Decoded decoded = decode_frame(frame);
  ASSERT_TRUE(decoded);
  std::size_t found = 0;
  decoded.frame().vectors([&](const core::SparseVector& one) {
    ++found;
    EXPECT_EQ(static_cast<int>(one.stat), 35) << "value_counts";
    EXPECT_EQ(one.row, 1u);
    EXPECT_EQ(one.params_bytes.size(), 16u);
    ASSERT_EQ(one.size(), 2u);
    EXPECT_EQ(one.value(0), 7.0);
  });
  EXPECT_EQ(found, 1u);
}

// A length beyond its extension, or a row that the frame does not have, is passed over.
TEST(FrameVectors, VectorsThatDoNotFitAreLeftOut) {
  const auto seen = [](std::uint32_t row, std::uint32_t n) {
    Bytes payload(16 + 8);
    const std::uint16_t stat = 35;
    std::memcpy(payload.data(), &stat, 2);
    std::memcpy(payload.data() + 4, &row, 4);
    std::memcpy(payload.data() + 8, &n, 4);
    FrameWriter writer;
    const std::array<core::SummaryRow, 2> rows{};
    const Bytes frame = finished(writer.summary(header(), rows).extension(2, payload));
    core::FrameHeader head;
    std::memcpy(&head, frame.data(), sizeof head);
    std::size_t found = 0;
    core::FrameView(head, frame.data() + sizeof head).vectors([&](const core::SparseVector&) {
      ++found;
    });
    return found;
  };
  EXPECT_EQ(seen(1, 1), 1u);
  EXPECT_EQ(seen(2, 1), 0u);
  EXPECT_EQ(seen(1, 2), 0u);
  EXPECT_EQ(seen(1, 0xFFFFFFFFu), 0u);
}

TEST(FrameEvolution, ReadsAStoredLifecycleWithFieldsOfALaterVersion) {
  const Bytes stored = read_data("wire/lifecycle_start.bin");
  const Decoded decoded = decode_frame(stored);
  ASSERT_TRUE(decoded);
  const auto start = parse_lifecycle(decoded.frame().body_text());
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(start->event, core::LifecycleEvent::start);
  EXPECT_EQ(start->job, "digits");
  EXPECT_EQ(start->labels.get("team"), "nlp");
  EXPECT_EQ(start->pid, 4711);
  EXPECT_EQ(start->pid_start, 123456);
  EXPECT_EQ(start->platform, "local");
  EXPECT_EQ(core::to_json(start->platform_ref), R"({"pid":4711})");
  EXPECT_FALSE(start->continues_from);
}

}  // namespace
}  // namespace tocsin::ingest
