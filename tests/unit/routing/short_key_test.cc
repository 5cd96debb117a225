// Keys and texts that many states have.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "routing/tables/sequences.h"
#include "routing/tables/shared_text.h"
#include "routing/tables/short_key.h"

namespace tocsin::routing {
namespace {

std::vector<std::string> texts() {
  std::vector<std::string> out;
  for (const std::size_t size : {0, 1, 15, 16, 26, 30, 31, 32, 33, 36, 127, 128, 300}) {
    out.push_back(std::string(size, 'k'));
    out.push_back(std::string(size, '\x7f'));  // the byte that marks a long one
    if (size > 0) out.back().back() = '\0';
  }
  return out;
}

TEST(ShortKey, IsTheTextThatItWasMadeOfOfAnyLength) {
  for (const std::string& text : texts()) {
    const ShortKey key(text);
    EXPECT_EQ(key.text(), text);
    EXPECT_EQ(key.empty(), text.empty());
    ShortKey copy(key);
    EXPECT_EQ(copy, key);
    const ShortKey moved(std::move(copy));
    EXPECT_EQ(moved, text);
    ShortKey other("something else");
    other = moved;
    EXPECT_EQ(other.text(), text);
    other = ShortKey(std::string(40, 'x'));
    EXPECT_EQ(other.text(), std::string(40, 'x'));
    EXPECT_EQ(moved.text(), text);
  }
}

TEST(ShortKey, IsOrderedAsTextsAre) {
  const std::vector<std::string> all = texts();
  for (const std::string& a : all) {
    for (const std::string& b : all) {
      EXPECT_EQ(ShortKey(a) < ShortKey(b), a < b);
      EXPECT_EQ(ShortKey(a) == ShortKey(b), a == b);
      EXPECT_EQ(ShortKey(a) < b, a < b);
      EXPECT_EQ(a < ShortKey(b), a < b);
    }
  }
}

TEST(ShortKey, IsFoundByAnyTextInMapsOfBothKinds) {
  std::map<ShortKey, int, std::less<>> ordered;
  std::unordered_map<ShortKey, int, KeyHash, std::equal_to<>> hashed;
  const std::vector<std::string> all = texts();
  for (std::size_t i = 0; i < all.size(); ++i) {
    ordered.emplace(all[i], static_cast<int>(i));
    hashed.emplace(all[i], static_cast<int>(i));
  }
  for (const std::string& text : all) {
    ASSERT_NE(ordered.find(std::string_view(text)), ordered.end());
    ASSERT_NE(hashed.find(std::string_view(text)), hashed.end());
    EXPECT_EQ(all[static_cast<std::size_t>(ordered.find(text)->second)], text);
  }
  EXPECT_EQ(ordered.find("not there"), ordered.end());
}

TEST(SharedTexts, EqualTextsBecomeOneAndGoWithTheLastThatHasIt) {
  SharedTexts texts;
  SharedText one("/default/rules/exploding_tensor");
  SharedText two(std::string("/default/rules/exploding_tensor"));
  ASSERT_NE(std::string_view(one).data(), std::string_view(two).data());
  texts.share(one);
  texts.share(two);
  EXPECT_EQ(std::string_view(one).data(), std::string_view(two).data());
  EXPECT_EQ(one, two);
  for (int i = 0; i < 10'000; ++i) {
    SharedText passing("/default/rules/" + std::to_string(i));
    texts.share(passing);
  }
  EXPECT_LT(texts.size(), 200U) << "nobody has them any more";
  SharedText again("/default/rules/exploding_tensor");
  texts.share(again);
  EXPECT_EQ(std::string_view(again).data(), std::string_view(one).data());
}

TEST(SharedTexts, AnEmptyOneIsNothing) {
  SharedTexts texts;
  SharedText empty("");
  texts.share(empty);
  EXPECT_EQ(texts.size(), 0U);
  EXPECT_EQ(empty.text(), "");
}

TEST(SharedTexts, SourcesOfSequencesAreShared) {
  SharedTexts texts;
  Sequences a{{"/x", 1}, {"/y", 2}};
  Sequences b{{"/y", 3}};
  a.share_with(texts);
  b.share_with(texts);
  EXPECT_EQ(std::string_view(a.find("/y")->first).data(),
            std::string_view(b.begin()->first).data());
  EXPECT_EQ(a.find("/y")->second, 2U);
}

}  // namespace
}  // namespace tocsin::routing
