// Numbers that are written as texts: the pattern of the JSON Schema takes those that parsing takes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "config/config.h"

namespace tocsin::config {
namespace {

template <typename T>
struct Key {
  Check<T> check;

  void operator()(Reader& in) const {
    T value{};
    in.optional("a", value, check, "");
  }
  [[nodiscard]] std::regex pattern() const {
    const nlohmann::json json = nlohmann::json::parse(schema("t", *this));
    return std::regex(json["properties"]["a"]["pattern"].get<std::string>());
  }
  [[nodiscard]] bool parses(const std::string& text) const {
    Diagnostics diagnostics;
    const auto document = Document::parse(
        "a: '" + text + "'", "t.yaml", [](const std::string&) { return std::nullopt; },
        diagnostics);
    if (document) document->read(diagnostics, *this);
    return !diagnostics.has_errors();
  }
  void agree(const std::vector<std::string>& texts) const {
    const std::regex pattern = this->pattern();
    for (const std::string& text : texts) {
      EXPECT_EQ(std::regex_search(text, pattern), parses(text)) << check.expected << ": " << text;
    }
  }
};

std::vector<std::string> wholes() {
  std::vector<std::string> out{"",   "x",   "1.0", "+1",         "-",          "007",
                               "-0", "1 2", "1e3", "4294967295", "4294967296", "99999999999"};
  for (int i = -130; i <= 1300; ++i) out.push_back(std::to_string(i));
  return out;
}

TEST(SchemaNumbers, WholeOnesWithinAnyBounds) {
  for (const auto& [low, high] :
       {std::pair{0, 0}, {0, 1}, {1, 9}, {7, 13}, {1, 100}, {99, 101}, {23, 1047}, {123, 128}}) {
    Key<std::uint32_t>{between(static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high))}
        .agree(wholes());
  }
  for (const auto& [low, high] : {std::pair{-5, 5}, {-120, -11}, {-1, 0}, {-13, 200}}) {
    Key<int>{between(low, high)}.agree(wholes());
  }
  Key<std::uint32_t>{at_least(23U)}.agree(wholes());
  Key<std::int64_t>{greater_than(std::int64_t{23})}.agree(wholes());
}

TEST(SchemaNumbers, FractionsWithinWholeBounds) {
  std::vector<std::string> texts{"",   "x",    ".",    "1.2.3",  "+0.5",  "-0.5",
                                 "0",  "0.0",  "0.00", ".5",     "00.5",  "1e-3",
                                 "1.", "100.", "-1",   "100.01", "100.0", "1e9x"};
  for (int i = 0; i <= 1100; ++i) {
    texts.push_back(std::to_string(i / 10) + "." + std::to_string(i % 10));
  }
  Key<double>{between(0.0, 1.0)}.agree(texts);
  Key<double>{between(0.0, 100.0)}.agree(texts);
  Key<double>{above(0, 100)}.agree(texts);
  Key<double>{above(1, 23)}.agree({"0.9", "1", "1.0", "1.01", "2", "22.99", "23", "23.0", "23.01"});
  Key<double>{at_least(1.0)}.agree({"0.5", "1", "1.5", "17", "1e-3", "1e3", "-1"});
  Key<double>{greater_than(0.0)}.agree({"0", "0.0", "0.001", "1e-8", "0e5", "-1", "3"});
}

}  // namespace
}  // namespace tocsin::config
