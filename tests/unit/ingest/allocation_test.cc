// The hot paths allocate nothing: counted, in a program of its own because it replaces operator
// new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "tests/unit/ingest/frame_fixture.h"

namespace {
std::atomic<std::size_t> g_allocations{0};
}  // namespace

// Not inlined: GCC 12 else takes malloc and delete for a mismatched pair.
__attribute__((noinline)) void* operator new(std::size_t size) {
  ++g_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace tocsin::ingest {
namespace {

using namespace fixture;

template <typename Work>
std::size_t allocations_of(Work&& work) {
  const std::size_t before = g_allocations.load();
  work();
  return g_allocations.load() - before;
}

TEST(Allocations, TheCounterCounts) {
  EXPECT_EQ(allocations_of([] { std::vector<int> numbers(7); }), 1u);
}

TEST(Allocations, DecodingAFrameMakesNone) {
  const Bytes bytes = read_data("wire/summary_extended.bin");
  core::RecordView record;
  record.value = bytes;
  JsonScalarDecoder json;
  double sum = 0;
  EXPECT_EQ(allocations_of([&] {
              const auto failure = decode_telemetry(
                  record, json, [&](const core::FrameView& frame, const core::FrameBody& /*body*/) {
                    for (std::size_t i = 0; i < frame.rows(); ++i) sum += frame.summary(i).n();
                    frame.sparse_columns(
                        [&](const core::SparseColumn& column) { sum += column.value(0); });
                  });
              sum += failure ? 1000 : 0;
            }),
            0u);
  EXPECT_EQ(sum, 4 + 10 + 4 + 0.5 + 7.0);
}

TEST(Allocations, RefusingAFrameMakesNone) {
  Bytes bytes = step_end_frame();
  bytes.back() ^= std::byte{1};
  bool refused = false;
  EXPECT_EQ(allocations_of([&] { refused = !decode_frame(bytes); }), 0u);
  EXPECT_TRUE(refused);
}

TEST(Allocations, WritingFramesMakesNoneOnceWarm) {
  const std::vector<core::SummaryRow> rows(500, summary_row());
  const std::vector<std::uint32_t> which{1, 7};
  const std::vector<double> values{1, 2};
  const core::FrameHeader from = header();
  FrameWriter writer;
  const auto write = [&] {
    writer.summary(from, rows).sparse_column(core::SparseStat::median, {}, which, values);
    return writer.finish()->size();
  };
  const std::size_t size = write();
  std::size_t again = 0;
  EXPECT_EQ(allocations_of([&] { again = write(); }), 0u);
  EXPECT_EQ(again, size);
}

}  // namespace
}  // namespace tocsin::ingest
