#include "core/visible_text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/text.h"

namespace tocsin::core {
namespace {

TEST(Visible, KeepsWhatPeopleWrite) {
  for (const char* text : {"llm-7b", "schön – 学習 № 7", "שלום", "🙂", ""}) {
    EXPECT_EQ(visible(text), text);
  }
}

TEST(Visible, NothingMovesTheCursorOrBreaksALine) {
  EXPECT_EQ(visible("a\nb\rc\td\x1b[31m\x7f"
                    "e"),
            "a b c d [31m e");
  EXPECT_EQ(visible("a\u0085b\u009bc\u2028d\u2029e"), "a b c d e");
}

TEST(Visible, NothingChangesTheDirectionOfWhatFollows) {
  for (const char* mark : {"\u061c", "\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d",
                           "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"}) {
    EXPECT_EQ(visible(std::string("a") + mark + "b"), "a b") << mark;
  }
}

TEST(Visible, NothingHides) {
  for (const char* mark :
       {"\u00ad", "\u034f", "\u115f", "\u180e",     "\u200b",     "\u200c",    "\u200d",
        "\u2060", "\u206f", "\u3164", "\ue000",     "\ufdd0",     "\ufe0f",    "\ufeff",
        "\uffa0", "\ufff9", "\uffff", "\U0001ffff", "\U000e0041", "\U0010ffff"}) {
    EXPECT_EQ(visible(std::string("a") + mark + "b"), "a b") << mark;
  }
}

TEST(Visible, IsValidWhateverItIsGiven) {
  EXPECT_EQ(visible("a\xff"
                    "b"),
            "a\ufffd"
            "b");
  EXPECT_EQ(visible("a\xed\xa0\x80"
                    "b")
                .front(),
            'a');
  EXPECT_EQ(first_invalid_utf8(visible("a\xf0\x9f")), std::nullopt);
}

TEST(Visible, ACutIsBetweenCharactersAndMarked) {
  EXPECT_EQ(visible("abcdef", 6), "abcdef");
  EXPECT_EQ(visible("abcdefg", 6), "abc…");
  EXPECT_EQ(visible("ößäöß", 6), "ö…");
  EXPECT_EQ(visible("abc", 2), "…");
  EXPECT_EQ(visible(std::string(1000, '\xff'), 9), "\ufffd\ufffd…");
}

TEST(VisibleWords, HaveOneBlankBetweenThemAndNoneAtTheEnds) {
  EXPECT_EQ(visible_words("gradient/conv1.weight"), "gradient/conv1.weight");
  EXPECT_EQ(visible_words("  a \n\tb\xE2\x80\x8B "), "a b");
  EXPECT_EQ(visible_words("\xE2\x80\x8B\x01 "), "");
}

TEST(Visible, IsNeverLongerThanItsLimitAndNeverShorterWithoutAMark) {
  rc::check([](const std::string& text, std::uint8_t limit) {
    const std::size_t most = std::size_t{limit} + 3;
    const std::string out = visible(text, most);
    RC_ASSERT(out.size() <= most);
    RC_ASSERT(!first_invalid_utf8(out));
    RC_ASSERT(out == visible(text) || out.ends_with("…"));
    RC_ASSERT(visible(out) == out);
  });
}

}  // namespace
}  // namespace tocsin::core
