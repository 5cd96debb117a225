// A file that several programs share, read by one of them.
#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tocsin::hook {
namespace {

using config::Diagnostics;
using config::Grade;
using config::Reader;
using ::testing::HasSubstr;

struct Ours {
  std::string journal = "default";
  std::string cluster = "default";
  int depth = 1;
};

void read(Reader& root, Ours& out) {
  root.section("transport", "", [&](Reader& in) { in.optional("journal", out.journal, "where"); });
  root.section("capture", "", [&](Reader& in) { in.optional("depth", out.depth, "how deep"); });
  root.optional("cluster", out.cluster, "name");
}

class SharedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tocsin-part-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name, std::ios::binary) << text;
    return (root_ / name).string();
  }

  Ours load(const std::string& path) {
    Ours out;
    const auto nothing = [](const std::string&) { return std::nullopt; };
    problems_ = {};
    read_own_sections(
        path, nothing, [&](Reader& in) { read(in, out); }, problems_);
    return out;
  }
  Ours load_text(const std::string& text) { return load(write("shared.yaml", text)); }

  [[nodiscard]] std::string said(Grade grade) const {
    std::string out;
    for (const auto& one : problems_.items()) {
      if (one.grade == grade) out += config::to_text(one) + "\n";
    }
    return out;
  }

  std::filesystem::path root_;
  Diagnostics problems_;
};

TEST_F(SharedFile, WhateverStandsInOtherSectionsIsLeftAlone) {
  const std::string own = "transport: {journal: d}\n";
  for (const char* other :
       {"reports: {at_end: html}\n", "reports: 7\n", "reports:\n", "of_the_future: [1, {a: b}]\n",
        "rules: [{use: x}, {use: ${NOT_SET}}]\n", "rules:\n- a\n- a: 1\n  a: 2\n",
        "? [a, b]\n: c\n", "receivers: &anchor {a: *anchor}\n", "version: 99\n"}) {
    for (const std::string& text : {own + other, other + own}) {
      EXPECT_EQ(load_text(text).journal, "d") << text;
      EXPECT_FALSE(problems_.has_errors()) << text << said(Grade::error);
    }
  }
}

TEST_F(SharedFile, OtherSectionsThatAreNoYamlAreAWarningWithTheirPlace) {
  const std::string own = "transport: {journal: d}\ncapture:\n  depth: 3\n";
  for (const char* other : {"rules: [{use: x\n", "rules:\n\t- use: x\n", "rules: \"never closed\n",
                            "rules:\n  - name: a: b\n", "route: {a: b}}\n", "rules: *nowhere\n",
                            "rules: \xff\xfe\n", "---\nrules: []\n---\n"}) {
    for (const std::string& text : {own + other, other + own}) {
      const Ours read = load_text(text);
      EXPECT_EQ(read.journal, "d") << text;
      EXPECT_EQ(read.depth, 3) << text;
      EXPECT_FALSE(problems_.has_errors()) << text << said(Grade::error);
      // A quote that the end of the file closes takes nothing away.
      if (text.ends_with("never closed\n")) continue;
      EXPECT_THAT(said(Grade::warning), HasSubstr("shared.yaml")) << text;
    }
  }
}

TEST_F(SharedFile, OneOwnSectionThatIsNoYamlTakesNothingFromTheOthers) {
  const Ours read = load_text("transport: {journal: d}\ncapture: {depth: [\ncluster: c\n");
  EXPECT_EQ(read.journal, "d");
  EXPECT_EQ(read.depth, 1);
  EXPECT_EQ(read.cluster, "c");
  EXPECT_THAT(said(Grade::error), HasSubstr("capture"));
}

TEST_F(SharedFile, AWrongKeyOfAnOwnSectionIsAnErrorAtItsPlaceAndTheOthersHold) {
  const Ours read = load_text("transport: {journal: d}\ncapture:\n  depht: 2\n");
  EXPECT_EQ(read.journal, "d");
  EXPECT_THAT(said(Grade::error),
              HasSubstr("shared.yaml:3:3: error: unknown key \"depht\"; did you mean \"depth\""));
}

TEST_F(SharedFile, MarksAndEndsOfLinesOfOtherSystemsAreRead) {
  EXPECT_EQ(load_text("\xEF\xBB\xBFtransport: {journal: d}\r\ncapture:\r\n  depth: 2\r\n").depth,
            2);
  EXPECT_FALSE(problems_.has_errors()) << said(Grade::error);
  EXPECT_EQ(load_text("\xEF\xBB\xBFtransport: {journal: d}\r\nrules: [\r\n").journal, "d");
  EXPECT_EQ(load_text("").journal, "default");
  EXPECT_EQ(load_text("# nothing\n").journal, "default");
  EXPECT_FALSE(problems_.has_errors()) << said(Grade::error);
}

TEST_F(SharedFile, AnchorsMergedMapsAndIncludedFilesAreRead) {
  EXPECT_EQ(load_text("notes: &base {depth: 4}\ncapture: {<<: *base}\n").depth, 4);
  EXPECT_EQ(load_text("notes: &base {depth: 4}\ncapture: {depth: 5, <<: [*base]}\n").depth, 5);
  EXPECT_FALSE(problems_.has_errors()) << said(Grade::error);
  write("more.yaml", "cluster: c\nrules: {a: [1]}\n");
  EXPECT_EQ(load_text("include: more.yaml\ntransport: {journal: d}\n").cluster, "c");
  EXPECT_FALSE(problems_.has_errors()) << said(Grade::error);
  write("more.yaml", "cluster: c\nrules: {a: [\n");
  EXPECT_EQ(load_text("include: more.yaml\ntransport: {journal: d}\n").journal, "d");
  EXPECT_THAT(said(Grade::error), HasSubstr("more.yaml")) << "nobody knows what it held";
  EXPECT_EQ(load_text("include: none.yaml\ntransport: {journal: d}\n").journal, "d");
  EXPECT_THAT(said(Grade::error), HasSubstr("none.yaml"));
}

TEST_F(SharedFile, WhatIsNoFileIsAnErrorAndEverythingElseADefault) {
  EXPECT_EQ(load(root_.string()).journal, "default");
  EXPECT_THAT(said(Grade::error), HasSubstr(root_.string()));
  EXPECT_EQ(load((root_ / "none.yaml").string()).journal, "default");
  EXPECT_THAT(said(Grade::error), HasSubstr("there is no file"));
  EXPECT_EQ(load_text("[1, 2]\n").journal, "default");
  EXPECT_THAT(said(Grade::error), HasSubstr("expected a map of sections"));
  EXPECT_EQ(load_text("just words\n").journal, "default");
  EXPECT_TRUE(problems_.has_errors());
}

}  // namespace
}  // namespace tocsin::hook
