// Matchers: what they accept, what they match, what they say about mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "routing/routing.h"

namespace tocsin::routing {
namespace {

using ::testing::HasSubstr;

bool matches(std::string_view text, const core::Labels& labels) {
  const auto parsed = Matchers::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed && parsed->matches(labels);
}

std::string error_of(std::string_view text) {
  const auto parsed = Matchers::parse(text);
  return parsed ? "" : parsed.error().message;
}

TEST(Matchers, EqualityComparesTheWholeValue) {
  EXPECT_TRUE(matches("a=\"x\"", {{"a", "x"}}));
  EXPECT_FALSE(matches("a=\"x\"", {{"a", "xy"}}));
  EXPECT_TRUE(matches("a!=\"x\"", {{"a", "y"}}));
  EXPECT_FALSE(matches("a!=\"x\"", {{"a", "x"}}));
}

TEST(Matchers, RegexesAreAnchoredAtBothEnds) {
  EXPECT_TRUE(matches("a=~\"nan_loss|inf\"", {{"a", "inf"}}));
  EXPECT_FALSE(matches("a=~\"nan|inf\"", {{"a", "nan_loss"}}));
  EXPECT_FALSE(matches("a=~\"loss\"", {{"a", "nan_loss"}}));
  EXPECT_TRUE(matches("a!~\"loss\"", {{"a", "nan_loss"}}));
  EXPECT_TRUE(matches("a=~\"x.*\"", {{"a", "x\u00e9"}}));
}

TEST(Matchers, AMissingLabelComparesAsEmpty) {
  EXPECT_TRUE(matches("env!=\"dev\"", {{"a", "x"}}));
  EXPECT_TRUE(matches("owner=\"\"", {{"a", "x"}}));
  EXPECT_FALSE(matches("owner=\"\"", {{"owner", "me"}}));
  EXPECT_TRUE(matches("owner=~\".*\"", {}));
  EXPECT_FALSE(matches("owner=~\".+\"", {}));
}

TEST(Matchers, AListIsAConjunction) {
  EXPECT_TRUE(matches("{a=\"x\", b=~\"y|z\"}", {{"a", "x"}, {"b", "z"}}));
  EXPECT_FALSE(matches("{a=\"x\", b=~\"y|z\"}", {{"a", "x"}, {"b", "w"}}));
  EXPECT_TRUE(matches("a=x,b=y", {{"a", "x"}, {"b", "y"}}));
  EXPECT_TRUE(matches(" { a = x , } ", {{"a", "x"}}));
  EXPECT_TRUE(matches("{}", {}));
  EXPECT_TRUE(matches("", {}));
  EXPECT_TRUE(Matchers().matches({{"a", "x"}}));
}

TEST(Matchers, QuotesTakeEveryCharacter) {
  EXPECT_TRUE(matches(R"(a="x \"y\" \\ {}=,'")", {{"a", "x \"y\" \\ {}=,'"}}));
  EXPECT_TRUE(matches(R"(a="1\n2\t3\r")", {{"a", "1\n2\t3\r"}}));
  EXPECT_TRUE(matches(R"(a=~"conv\d\.weight")", {{"a", "conv1.weight"}}));
  EXPECT_FALSE(matches(R"(a=~"conv\d\.weight")", {{"a", "conv1xweight"}}));
  EXPECT_TRUE(matches("\"service.name\"=\"x\"", {{"service.name", "x"}}));
  EXPECT_TRUE(matches("\"gr\u00f6\u00dfe\"=klein", {{"gr\u00f6\u00dfe", "klein"}}));
  EXPECT_TRUE(matches("a=gr\u00f6\u00dfe/1.2", {{"a", "gr\u00f6\u00dfe/1.2"}}));
}

TEST(Matchers, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(error_of("a"), HasSubstr("expected one of = != =~ !~ at character 2"));
  EXPECT_THAT(error_of("a=="),
              HasSubstr("expected a value (write \"\" for an empty one) at character 3"));
  EXPECT_THAT(error_of("a="), HasSubstr("expected a value"));
  EXPECT_THAT(error_of("1a=x"), HasSubstr("need quotes) at character 1"));
  EXPECT_THAT(error_of("a=x b=y"), HasSubstr("expected a comma or the end at character 5"));
  EXPECT_THAT(error_of("{a=x"), HasSubstr("expected a comma or } at character 5"));
  EXPECT_THAT(error_of("{"), HasSubstr("expected a label name"));
  EXPECT_THAT(error_of("{a=x} b"), HasSubstr("expected nothing after } at character 7"));
  EXPECT_THAT(error_of("a=\"x"), HasSubstr("expected a closing quote for the one at character 3"));
  EXPECT_THAT(error_of("\"\"=x"), HasSubstr("at least one character"));
  EXPECT_THAT(error_of("a=it's"), HasSubstr("expected a comma or the end at character 5"));
  EXPECT_THAT(error_of("a=~\"(\""), HasSubstr("regular expression of a=~\"(\": missing )"));
  EXPECT_THAT(error_of("a=\"\xff\""), HasSubstr("expected valid UTF-8 at character 4"));
  EXPECT_THAT(error_of(",a=x"), HasSubstr("expected a label name"));
}

TEST(Matchers, PlacesAreCountedInCharacters) {
  EXPECT_THAT(error_of("a=\u00e9\u00e9 b"), HasSubstr("at character 6"));
}

TEST(Matchers, OverlongAndSurrogateBytesAreNotUtf8) {
  for (const std::string bad :
       {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(Matchers::parse("a=\"" + bad + "\"")) << bad;
  }
  EXPECT_TRUE(Matchers::parse("a=\"\xf0\x9f\x94\xa5\""));
}

TEST(Matchers, TheCanonicalTextParsesToTheSame) {
  for (const std::string text :
       {R"({b="1",a!="x \"q\" \\"})", R"({"service.name"=~"a\\.b"})", R"({a!~"x\n"})", "{}"}) {
    const auto parsed = Matchers::parse(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->canonical(), text);
    EXPECT_EQ(Matchers::parse(parsed->canonical())->canonical(), text);
  }
  EXPECT_EQ(Matchers::parse(R"(a=~"x\.y")")->canonical(), R"({a=~"x\\.y"})");
}

TEST(Matchers, ARegexNeverBacktracks) {
  // (a+)+$ takes exponential time in a backtracking engine.
  EXPECT_FALSE(matches("a=~\"(a+)+b\"", {{"a", std::string(50'000, 'a')}}));
}

}  // namespace
}  // namespace tocsin::routing
