// The quick way to a tape takes what it should, and says of it what the library says.
#include "core/fields/json_scan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/json.h"

namespace tocsin::core {
namespace {

bool taken(std::string_view text) {
  std::vector<JsonTape::Node> nodes;
  std::string texts;
  return scan_json(text, nodes, texts);
}

TEST(JsonScan, TakesWhatProgramsWrite) {
  for (const char* text : {"null", "true", "-12", "0", "1.5", "-0.25e-3", "1E5", "\"\"",
                           R"("a \"b\" \\ \/ \n\t\r\b\f")", "[]", "{}", " [1, [2, {\"a\": []}] ]\n",
                           R"({"a":1,"b":{"a":1,"":"x"}})", "9223372036854775807",
                           "\"longer than one word of eight bytes\"", "\"\x7f\""}) {
    EXPECT_TRUE(taken(text)) << text;
  }
}

TEST(JsonScan, LeavesTheRestToTheLibrary) {
  const std::string deep(kMaxJsonDepth + 1, '[');
  for (const std::string& text : std::vector<std::string>{"",
                                                          "nul",
                                                          "01",
                                                          "-",
                                                          "1.",
                                                          "1e",
                                                          "+1",
                                                          ".5",
                                                          "\"",
                                                          "\"\\u00e4\"",
                                                          "\"\xc3\xa4\"",
                                                          "\"a\nb\"",
                                                          "[1,]",
                                                          "[1 2]",
                                                          "{\"a\"}",
                                                          "{\"a\":1,}",
                                                          "{a:1}",
                                                          "{} x",
                                                          R"({"a":1,"b":2,"a":3})",
                                                          "9223372036854775808",
                                                          "1e999",
                                                          "-0",
                                                          deep}) {
    EXPECT_FALSE(taken(text)) << text;
  }
}

std::string number_text(int shape, std::int64_t whole, unsigned fraction) {
  std::string out = std::to_string(shape == 0 ? whole : whole % 100'000);
  if (shape > 1) out += "." + std::to_string(fraction);
  if (shape > 2) out += (fraction % 2 == 0 ? "e-" : "E+") + std::to_string(fraction % 30);
  return out;
}

rc::Gen<std::string> json_text(int depth) {
  return rc::gen::exec([depth]() -> std::string {
    const int kind = *rc::gen::inRange(0, depth > 0 ? 6 : 4);
    const auto space = [] { return std::string(*rc::gen::element("", "", " ", "\n\t")); };
    if (kind == 0) return *rc::gen::element(std::string("null"), std::string("true"), "false");
    if (kind == 1) {
      return number_text(*rc::gen::inRange(0, 4), *rc::gen::arbitrary<std::int64_t>(),
                         *rc::gen::inRange(0U, 1'000'000U));
    }
    if (kind <= 3) {
      const auto piece = rc::gen::element<std::string>("a", "B7", "\\n", "\\\"", "\\\\", " ",
                                                       "gradient/", "{", "]", ",", "\\u00e4", "ö");
      std::string out = "\"";
      for (const auto& one : *rc::gen::container<std::vector<std::string>>(piece)) out += one;
      return out + "\"";
    }
    std::string out(1, kind == 4 ? '[' : '{');
    const int count = *rc::gen::inRange(0, 5);
    for (int i = 0; i < count; ++i) {
      if (i > 0) out += "," + space();
      if (kind == 5) out += "\"k" + std::to_string(i) + "\"" + space() + ":" + space();
      out += *json_text(depth - 1);
    }
    return out + (kind == 4 ? "]" : "}");
  });
}

// Whole and damaged: a byte gone, doubled or changed.
RC_GTEST_PROP(JsonScan, SaysWhatTheLibrarySays, ()) {
  std::string text = *json_text(4);
  const int damage = *rc::gen::inRange(0, 6);
  if (damage > 2 && !text.empty()) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    if (damage == 3) text.erase(at, 1);
    if (damage == 4) text.insert(at, 1, text[at]);
    if (damage == 5)
      text[at] = *rc::gen::element('"', '\\', '{', ']', ',', '0', '-', '.', 'e', ' ');
  }
  const bool quick = taken(text);
  const auto tape = JsonTape::parse(text, text.size());
  const auto library = parse_json(text, text.size());
  RC_TAG(quick);
  RC_ASSERT(tape.has_value() == library.has_value());
  if (quick) RC_ASSERT(tape.has_value());
  if (tape) RC_ASSERT(to_json(tape->value(0, false)) == to_json(*library));
}

}  // namespace
}  // namespace tocsin::core
