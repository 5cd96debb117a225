// The layout of frame v1, and what readers derive from a summary row.
#include "core/frame.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace tocsin::core {
namespace {

TEST(FrameLayout, FieldsStandWhereThePageSays) {
  EXPECT_EQ(offsetof(FrameHeader, kind), 6u);
  EXPECT_EQ(offsetof(FrameHeader, header_length), 8u);
  EXPECT_EQ(offsetof(FrameHeader, row_count), 12u);
  EXPECT_EQ(offsetof(FrameHeader, crc), 20u);
  EXPECT_EQ(offsetof(FrameHeader, run), 24u);
  EXPECT_EQ(offsetof(FrameHeader, attempt), 40u);
  EXPECT_EQ(offsetof(FrameHeader, shard), 52u);
  EXPECT_EQ(offsetof(FrameHeader, step), 56u);
  EXPECT_EQ(offsetof(FrameHeader, time), 72u);
  EXPECT_EQ(offsetof(FrameHeader, sequence), 80u);
  EXPECT_EQ(offsetof(FrameHeader, incarnation), 88u);
  EXPECT_EQ(offsetof(FrameHeader, worker), 96u);
  EXPECT_EQ(offsetof(FrameHeader, pass), 104u);
  EXPECT_EQ(offsetof(FrameHeader, flags), 108u);
}

/// x = [1, -2, 0, 3].
SummaryRow row() {
  SummaryRow out;
  out.count = 4;
  out.sum = 2;
  out.sumsq = 14;
  out.m2 = 13;
  out.abs_sum = 6;
  out.min = -2;
  out.max = 3;
  out.zero = 1;
  out.negative = 1;
  return out;
}

TEST(SummaryRowTest, DerivesWhatIsNeverSent) {
  EXPECT_EQ(row().mean(), 0.5);
  EXPECT_EQ(row().abs_mean(), 1.5);
  EXPECT_EQ(row().l1(), 6.0);
  EXPECT_EQ(row().l2(), std::sqrt(14.0));
  EXPECT_EQ(row().variance(), 3.25);
  EXPECT_EQ(row().std(), std::sqrt(3.25));
  EXPECT_EQ(row().abs_max(), 3.0);
  EXPECT_EQ(row().positive(), 2u);
}

TEST(SummaryRowTest, NaNElementsMakeTheExtremesNaN) {
  SummaryRow broken = row();
  broken.min = std::nan("");
  broken.nan = 1;
  broken.posinf = 2;
  EXPECT_TRUE(std::isnan(broken.abs_max()));
  EXPECT_EQ(broken.non_finite(), 3u);
}

TEST(FrameViewTest, ReadsRowsOutOfColumns) {
  const std::vector<std::uint64_t> columns{1, 2, 10, 20, 11, 21, 12, 22, 13, 23, 14, 24};
  FrameHeader header;
  header.kind = FrameKind::step_end;
  header.row_stride = sizeof(StepEndRow);
  header.row_count = 2;
  header.body_length = static_cast<std::uint32_t>(columns.size() * 8);
  const FrameView view(header, reinterpret_cast<const std::byte*>(columns.data()));
  EXPECT_EQ(view.step_end(0).step, 1);
  EXPECT_EQ(view.step_end(1).step, 2);
  EXPECT_EQ(view.step_end(1).global_step, 20);
  EXPECT_EQ(view.step_end(0).meta, 14u);
  EXPECT_EQ(view.column<std::int64_t>(step_end_column::end)[1], 22);
  EXPECT_TRUE(view.columnar());
}

}  // namespace
}  // namespace tocsin::core
