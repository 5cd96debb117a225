// What is too long, or no text at all, is made to fit so that it shows.
#include "core/limits.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <string>

#include "core/text.h"
#include "core/value.h"

namespace tocsin::core {
namespace {

std::string bounded(std::string text, std::size_t most) {
  bound_text(text, most);
  return text;
}

std::string name_of(std::string text) {
  bound_name(text);
  return text;
}

TEST(Limits, WhatFitsIsLeftAsItIs) {
  std::string text = "größe\n模型";
  EXPECT_FALSE(bound_text(text, 64));
  EXPECT_EQ(text, "größe\n模型");
  std::string exact(100, 'x');
  EXPECT_FALSE(bound_text(exact, 100));
}

TEST(Limits, ACutShowsAndKeepsNamesThatBeginAlikeApart) {
  const std::string a = bounded(std::string(5000, 'x') + "a", 1024);
  const std::string b = bounded(std::string(5000, 'x') + "b", 1024);
  EXPECT_EQ(a.size(), 1024U);
  EXPECT_EQ(a.substr(0, 1012), std::string(1012, 'x'));
  EXPECT_NE(a.find("…#"), a.npos);
  EXPECT_NE(a, b);
  EXPECT_EQ(a, bounded(std::string(5000, 'x') + "a", 1024));
}

TEST(Limits, WhatIsNoTextIsReplaced) {
  EXPECT_EQ(bounded(std::string("a\0b", 3), 64), "a\uFFFDb");
  EXPECT_EQ(bounded("a\xff\xfe", 64), "a\uFFFD\uFFFD");
  EXPECT_EQ(bounded("a\xe6\xa8", 64), "a\uFFFD\uFFFD");
  EXPECT_EQ(bounded(std::string(63, 'x') + "größe", 100), std::string(63, 'x') + "größe");
  EXPECT_EQ(bounded(std::string(63, 'x') + "\xff größe", 100),
            std::string(63, 'x') + "\uFFFD größe");
  EXPECT_EQ(bounded(std::string(62, 'x') + "模\xff", 100), std::string(62, 'x') + "模\uFFFD");
  EXPECT_EQ(name_of(""), "(no name)");
  EXPECT_EQ(name_of("a\nb\x01"), "a\uFFFDb\uFFFD");
  const std::string bad = bounded(std::string(900'000, '\xff'), 1024);
  EXPECT_LE(bad.size(), 1024U);
}

TEST(Limits, OfTooManyLabelsTheNumberOfTheOthersStaysAndNoneThatIsNeededGoes) {
  Labels labels{{"zone", "z"}};
  for (int i = 0; i < 300; ++i) labels.set("l" + std::to_string(1000 + i), "v");
  const auto needed = [](std::string_view name) { return name == "zone"; };
  const LabelsBound bound = bound_labels(labels, 64, needed);
  EXPECT_EQ(labels.entries().size(), 64U);
  EXPECT_EQ(labels.get("zone"), "z");
  EXPECT_EQ(labels.get("l1000"), "v");
  EXPECT_EQ(bound.left_out, 238U);
  EXPECT_EQ(labels.get(kLabelsLeftOut), "238");
}

TEST(Limits, LongLabelsAreCutUntilAllTogetherFit) {
  Labels labels{{"short", "s"}};
  for (int i = 0; i < 30; ++i) labels.set("l" + std::to_string(i), std::string(10'000, 'x'));
  EXPECT_FALSE(bound_run_labels(labels).fits());
  EXPECT_EQ(labels.get("short"), "s");
  std::size_t bytes = 0;
  for (const auto& [name, value] : labels.entries()) bytes += json_bytes(name) + json_bytes(value);
  EXPECT_LE(bytes, limit::kLabelsBytes);
  EXPECT_GT(bytes, limit::kLabelsBytes / 4) << "no more than must go";
}

TEST(LimitsProperty, AnyTextBecomesOneThatFits) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    std::string out;
    for (int i = 0; i < 40; ++i) out += text;
    const std::string given = out;
    bound_name(out, 100);
    RC_ASSERT(out.size() <= 100U);
    RC_ASSERT(!out.empty());
    RC_ASSERT(!first_invalid_utf8(out).has_value());
    RC_ASSERT(out.find('\0') == out.npos);
    std::string again = out;
    RC_ASSERT(!bound_name(again, 100));
    RC_ASSERT(again == out);
    if (!first_invalid_utf8(given) && given.size() <= 100 && given == out) RC_TAG("as it was");
  }));
}

TEST(LimitsProperty, AnyLabelsBecomeSomeThatFit) {
  EXPECT_TRUE(rc::check([]() {
    Labels labels;
    const auto pairs = *rc::gen::arbitrary<std::vector<std::pair<std::string, std::string>>>();
    const auto times = *rc::gen::inRange(1, 400);
    for (const auto& [name, value] : pairs) {
      std::string longer;
      for (int i = 0; i < times; ++i) longer += value;
      labels.set(name, longer);
    }
    labels.set("run_uid", "u");
    bound_labels(labels, 20, [](std::string_view name) { return name == "run_uid"; });
    RC_ASSERT(labels.entries().size() <= 20U);
    RC_ASSERT(labels.get("run_uid") == "u");
    std::size_t bytes = 0;
    for (const auto& [name, value] : labels.entries()) {
      RC_ASSERT(!name.empty() && name.find('\0') == name.npos);
      RC_ASSERT(name.size() <= limit::kLabelNameBytes);
      RC_ASSERT(value.size() <= limit::kLabelValueBytes);
      RC_ASSERT(!first_invalid_utf8(name) && !first_invalid_utf8(value));
      bytes += json_bytes(name) + json_bytes(value);
    }
    RC_ASSERT(bytes <= limit::kLabelsBytes);
    Labels again = labels;
    bound_labels(again, 20, [](std::string_view name) { return name == "run_uid"; });
    RC_ASSERT(again == labels);
  }));
}

}  // namespace
}  // namespace tocsin::core
