// Bytes of snapshots.
#include "rules/contract/archive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace tocsin::rules {
namespace {

struct Padded {
  std::uint32_t number = 0;
  bool flag = false;
  double value = 0;
};

/// A structure in memory that held something else before.
Padded* over_old_memory(std::byte* memory) {
  std::fill_n(memory, sizeof(Padded), std::byte{0xAB});
  auto* made = new (memory) Padded;
  made->number = 1;
  made->flag = true;
  made->value = 2;
  return made;
}

TEST(Archive, NothingOfWhatStoodInThePaddingIsWritten) {
#if !defined(TOCSIN_CLEARS_PADDING)
  GTEST_SKIP() << "this compiler cannot clear padding";
#endif
  alignas(Padded) std::array<std::byte, sizeof(Padded)> memory{};
  Padded* one = over_old_memory(memory.data());
  std::string alone;
  Writer first(alone);
  io(first, *one);
  EXPECT_EQ(alone.find('\xAB'), std::string::npos);

  std::vector<Padded> many(3);
  for (Padded& each : many) over_old_memory(reinterpret_cast<std::byte*>(&each));
  std::string together;
  Writer second(together);
  io(second, many);
  EXPECT_EQ(together.find('\xAB'), std::string::npos);

  std::vector<Padded> back;
  Loader loader(together);
  io(loader, back);
  ASSERT_TRUE(loader.ok());
  ASSERT_EQ(back.size(), 3U);
  EXPECT_EQ(back[2].number, 1U);
  EXPECT_TRUE(back[2].flag);
  EXPECT_EQ(back[2].value, 2);
}

TEST(Archive, WhatHasNoValueIsZeros) {
  alignas(std::optional<double>) std::array<std::byte, sizeof(std::optional<double>)> memory{};
  for (const bool there : {false, true}) {
    memory.fill(std::byte{0xAB});
    auto* one = new (memory.data()) std::optional<double>;
    if (there) one->emplace(1.5);
    std::string out;
    Writer writer(out);
    io(writer, *one);
    EXPECT_EQ(out.find('\xAB'), std::string::npos);
    std::optional<double> back = 7;
    Loader loader(out);
    io(loader, back);
    ASSERT_TRUE(loader.ok());
    EXPECT_EQ(back, *one);
  }
}

struct One {
  double number = 1;
  std::array<double, 64> many{};
  std::uint32_t last = 2;
  Gap<4> gap{};
};
struct Other {
  bool flag = true;
  Gap<7> gap_after_flag{};
  std::array<std::array<double, 2>, 64> many{};
  std::array<double, 64> more{};
  std::uint32_t last = 3;
  Gap<4> gap_at_end{};
};
struct Both : One, Other {
  std::array<double, 8> tail{};
  std::uint32_t size = 4;
  Gap<4> gap_at_its_end{};
};
static_assert(Whole<Both> && !Whole<Padded>);

// GCC 12 takes data of such a structure for padding.
TEST(Archive, ALargeStructureWithBasesComesBackWhole) {
  Both one;
  one.One::many.fill(5);
  for (auto& pair : one.Other::many) pair.fill(6);
  one.more.fill(7);
  one.tail.fill(8);
  std::string out;
  Writer writer(out);
  io(writer, one);
  Both back;
  Loader loader(out);
  io(loader, back);
  ASSERT_TRUE(loader.ok());
  EXPECT_EQ(back.One::many, one.One::many);
  EXPECT_EQ(back.Other::many, one.Other::many);
  EXPECT_EQ(back.more, one.more);
  EXPECT_EQ(back.tail, one.tail);
  EXPECT_EQ(back.size, 4U);
}

}  // namespace
}  // namespace tocsin::rules
