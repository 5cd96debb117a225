// Raw tensors in pieces: what is taken, what is refused and why, and that what comes out is what went in.
#include "ingest/wire/tensor_chunk.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "ingest/ingest.h"
#include "tests/unit/ingest/frame_fixture.h"

namespace tocsin::ingest {
namespace {

using Added = TensorAssembly::Added;

const std::array<std::int64_t, 2> kDims{2, 3};

/// Chunk `number` of two of a 2×3 tensor of f16: 12 bytes, cut behind the eighth.
TensorChunk piece(std::uint32_t number, std::span<const std::byte> data) {
  TensorChunk out;
  out.name = 7;
  out.dtype = core::Dtype::f16;
  out.chunk = number;
  out.chunks = 2;
  out.total_bytes = 12;
  out.byte_offset = number == 0 ? 0 : 8;
  out.dims_bytes = std::as_bytes(std::span(kDims));
  out.data = number == 0 ? data.first(8) : data.subspan(8);
  return out;
}

class TensorAssemblyTest : public ::testing::Test {
 protected:
  TensorAssemblyTest() {
    for (std::size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<std::byte>(i * 17);
  }
  std::vector<std::byte> data_ = std::vector<std::byte>(12);
  TensorAssembly parts_;
};

TEST_F(TensorAssemblyTest, ChunksInAnyOrderAreTheTensor) {
  EXPECT_EQ(parts_.add(piece(1, data_)), Added::taken);
  EXPECT_FALSE(parts_.whole());
  EXPECT_EQ(parts_.wrong(), "chunk 0 of 2 is missing (1 are there)");
  EXPECT_FALSE(parts_.take());
  EXPECT_EQ(parts_.add(piece(0, data_)), Added::taken);
  EXPECT_TRUE(parts_.whole());
  EXPECT_EQ(parts_.take(), data_);
  EXPECT_EQ(parts_.dtype(), core::Dtype::f16);
  EXPECT_EQ(parts_.dims(), (std::vector<std::int64_t>{2, 3}));
}

TEST_F(TensorAssemblyTest, OfTheSameChunkTheFirstStays) {
  EXPECT_EQ(parts_.add(piece(0, data_)), Added::taken);
  std::vector<std::byte> other(12, std::byte{0xFF});
  EXPECT_EQ(parts_.add(piece(0, other)), Added::duplicate);
  EXPECT_EQ(parts_.add(piece(1, data_)), Added::taken);
  EXPECT_EQ(parts_.take(), data_);
}

TEST_F(TensorAssemblyTest, ChunksOfAnotherTensorContradict) {
  EXPECT_EQ(parts_.add(piece(0, data_)), Added::taken);
  for (const int which : {0, 1, 2, 3}) {
    TensorChunk other = piece(1, data_);
    const std::array<std::int64_t, 2> dims{3, 2};
    if (which == 0) other.dtype = core::Dtype::bf16;
    if (which == 1) other.dims_bytes = std::as_bytes(std::span(dims));
    if (which == 2) other.total_bytes = 13;
    if (which == 3) other.chunks = 3;
    EXPECT_EQ(parts_.add(other), Added::contradicts) << which;
  }
  EXPECT_EQ(parts_.wrong(), "chunk 1 of 2 is missing (1 are there)");
}

TEST_F(TensorAssemblyTest, GapsOverlapsAndShapesThatDoNotFitAreNamed) {
  TensorChunk second = piece(1, data_);
  second.byte_offset = 7;
  parts_.add(piece(0, data_));
  parts_.add(second);
  EXPECT_EQ(parts_.wrong(), "chunk 1 does not begin where the one before it ends");

  TensorAssembly small;
  TensorChunk first = piece(0, data_);
  second = piece(1, data_);
  first.total_bytes = second.total_bytes = 13;
  small.add(first);
  small.add(second);
  EXPECT_EQ(small.wrong(), "the chunks hold fewer bytes than the tensor has");

  const auto alone = [&](core::Dtype dtype, std::vector<std::int64_t> dims) {
    TensorAssembly one;
    TensorChunk chunk = piece(0, data_);
    chunk.chunks = 1;
    chunk.dtype = dtype;
    chunk.data = data_;
    chunk.dims_bytes = std::as_bytes(std::span(dims));
    one.add(chunk);
    return one.wrong();
  };
  EXPECT_EQ(alone(core::Dtype::f32, {3}), "");
  EXPECT_EQ(alone(core::Dtype::f32, {2, 3}), "its shape and its bytes contradict each other");
  EXPECT_EQ(alone(core::Dtype::f32, {-3}), "its shape has a negative extent");
  EXPECT_EQ(alone(core::Dtype::f32, {1LL << 62, 1LL << 62}), "its shape is larger than can be");
  EXPECT_EQ(alone(core::Dtype::text, {12}), "its elements have no size of their own");
}

std::string read_as(std::span<const std::byte> bytes) {
  const Decoded decoded = decode_frame(bytes);
  return decoded ? "ok" : std::string(to_string(decoded.error()));
}

TEST(TensorChunk, ExtensionsThatDoNotFitAreRefused) {
  const fixture::Bytes good = fixture::read_data("wire/tensor_reference.bin");
  ASSERT_TRUE(decode_frame(good));
  constexpr std::size_t kExtension = core::kFrameHeaderBytes + 40 + 8;  // head, one dimension
  const auto with = [&](std::size_t at, auto value) {
    fixture::Bytes bad = good;
    fixture::poke(bad, kExtension + at, value);
    return read_as(fixture::sealed(bad));
  };
  EXPECT_EQ(with(4, std::uint32_t{1'000}), "bad_length");       // longer than the frame
  EXPECT_EQ(with(8 + 8, std::uint32_t{1'000}), "bad_length");   // a name longer than its extension
  EXPECT_EQ(with(8 + 12, std::uint32_t{1'000}), "bad_length");  // the worker's
  EXPECT_EQ(with(0, std::uint16_t{99}), "ok");                  // a tag of a later version
  // The reference: behind the head, 16 + 12 + 8 bytes of names and their padding.
  EXPECT_EQ(with(8 + 40 + 8, ~std::uint64_t{0}), "bad_length");  // ends behind the end of all
}

}  // namespace
}  // namespace tocsin::ingest
