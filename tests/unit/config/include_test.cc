// Files: includes, cycles, missing files, secrets that rotate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/config.h"

namespace tocsin::config {
namespace {

using ::testing::HasSubstr;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tocsin-config-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
    return (root_ / name).string();
  }
  std::filesystem::path root_;
};

TEST_F(Files, AppendsIncludedListsAndMergesMaps) {
  const auto path = write("main.yaml", "include: [more.yaml]\nrules: [a]\nlabels: {x: '1'}\n");
  write("more.yaml", "rules: [b]\nlabels: {y: '2'}\n");
  Diagnostics diagnostics;
  auto document = Document::load(path, process_environment(), diagnostics);
  ASSERT_TRUE(document);
  std::vector<std::string> rules;
  std::map<std::string, std::string> labels;
  document->read(diagnostics, [&](Reader& in) {
    in.optional("rules", rules, "");
    in.optional("labels", labels, "");
  });
  EXPECT_FALSE(diagnostics.has_errors());
  EXPECT_THAT(rules, ::testing::ElementsAre("a", "b"));
  EXPECT_EQ(labels.size(), 2U);
}

TEST_F(Files, RefusesAnIncludeCycleAndShowsIt) {
  const auto path = write("a.yaml", "include: b.yaml\n");
  write("b.yaml", "include: a.yaml\n");
  Diagnostics diagnostics;
  auto document = Document::load(path, process_environment(), diagnostics);
  ASSERT_TRUE(diagnostics.has_errors());
  EXPECT_THAT(diagnostics.items()[0].message, HasSubstr("include cycle: "));
  EXPECT_THAT(diagnostics.items()[0].location.file, HasSubstr("b.yaml"));
}

TEST_F(Files, RefusesAMissingInclude) {
  const auto path = write("a.yaml", "include: nowhere.yaml\n");
  Diagnostics diagnostics;
  (void)Document::load(path, process_environment(), diagnostics);
  ASSERT_TRUE(diagnostics.has_errors());
  EXPECT_EQ(diagnostics.items()[0].location.line, 1);
}

TEST_F(Files, NamesAFileThatCannotBeRead) {
  Diagnostics diagnostics;
  EXPECT_FALSE(
      Document::load((root_ / "absent.yaml").string(), process_environment(), diagnostics));
  EXPECT_THAT(diagnostics.items().at(0).message, HasSubstr("absent.yaml"));
}

TEST_F(Files, ReadsARotatedSecretAgain) {
  const auto path = write("token", "first\n");
  const Secret secret = Secret::from_file(path);
  EXPECT_EQ(*secret.reveal(), "first");
  write("token", "second\n");
  EXPECT_EQ(*secret.reveal(), "second");
}

TEST_F(Files, RefusesAnEmptySecretFile) {
  const Secret secret = Secret::from_file(write("token", "\n"));
  EXPECT_EQ(secret.reveal().error().code, core::Code::invalid_argument);
}

}  // namespace
}  // namespace tocsin::config
