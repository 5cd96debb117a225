// Bytes of snapshots.
#include "rules/archive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
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

}  // namespace
}  // namespace tocsin::rules
