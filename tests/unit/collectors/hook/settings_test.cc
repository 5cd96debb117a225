#include "collectors/hook/client/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace tocsin::hook {
namespace {

using ::testing::HasSubstr;

ProcessFacts with(std::map<std::string, std::string> variables) {
  ProcessFacts facts;
  facts.environment = [variables](const std::string& name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  };
  return facts;
}

std::string write(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(Settings, WithoutAnythingTelemetryGoesToADirectoryBesideTheScript) {
  const auto settings = load_settings({}, with({}));
  ASSERT_TRUE(settings);
  EXPECT_TRUE(settings->transport.kafka.is_null());
  EXPECT_EQ(settings->out, "./tocsin-data");
}

TEST(Settings, ArgumentBeatsBrokersBeatsOutBeatsTheFile) {
  const std::string file = write("order.yaml", "transport: {journal: from-file}\n");
  EXPECT_EQ(load_settings({}, with({{"TOCSIN_CONFIG", file}}))->out, "from-file");
  EXPECT_EQ(load_settings({}, with({{"TOCSIN_CONFIG", file}, {"TOCSIN_OUT", "d"}}))->out, "d");
  const auto both =
      with({{"TOCSIN_CONFIG", file}, {"TOCSIN_OUT", "d"}, {"TOCSIN_BROKERS", "b:9092"}});
  EXPECT_EQ(load_settings({}, both)->out, "kafka://b:9092");
  EXPECT_EQ(load_settings({"e", "", "", ""}, both)->out, "e");
  EXPECT_EQ(load_settings({"kafka://c:1", "", "", ""}, both)->out, "kafka://c:1");
}

TEST(Settings, OtherBrokersKeepTheFilesSecurity) {
  const std::string file =
      write("secure.yaml",
            "transport: {kafka: {bootstrap.servers: 'a:1', security.protocol: plaintext}}\n");
  const auto settings = load_settings({"kafka://b:2", file, "", ""}, with({}));
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(core::to_json(settings->transport.kafka),
            R"({"security.protocol":"plaintext","bootstrap.servers":"b:2"})");
}

TEST(Settings, OneFileServesAllProgramsAndOnlyOurSectionsAreJudged) {
  const std::string file = write("whole.yaml",
                                 "transport: {journal: ./d}\n"
                                 "cluster: c1\n"
                                 "labels: {team: nlp}\n"
                                 "capture: {every: 5 steps, collections: [gradients]}\n"
                                 "rules: [{use: anything, with: {x: 1}}]\n"
                                 "receivers: {a: {b: {c: 1}}}\n");
  const auto settings = load_settings({"", file, "", R"({"owner":"me"})"}, with({}));
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->cluster, "c1");
  EXPECT_EQ(settings->labels.get("team"), "nlp");
  EXPECT_EQ(settings->labels.get("owner"), "me");
  EXPECT_EQ(settings->capture.every.steps, 5);
  const auto denser = load_settings({"", file, "{every: 2 steps}", ""}, with({}));
  EXPECT_EQ(denser->capture.every.steps, 2);
  ASSERT_EQ(denser->capture.collections.size(), 1U);
}

TEST(Settings, WrongFilesAreWarningsWithTheirPlaceAndLeaveTheDefaults) {
  const std::string file = write("wrong.yaml", "cluster: c1\ncapture:\n  evry: 5 steps\n");
  const auto settings = load_settings({"", file, "", ""}, with({}));
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->cluster, "c1");
  ASSERT_EQ(settings->warnings.size(), 1U);
  EXPECT_THAT(settings->warnings[0], HasSubstr("wrong.yaml:3"));
  EXPECT_EQ(load_settings({"", "/does/not/exist.yaml", "", ""}, with({}))->warnings.size(), 1U);
  EXPECT_FALSE(load_settings({"", "", "", "[1]"}, with({})));
  EXPECT_FALSE(load_settings({"", "", "{evry: 5 steps}", ""}, with({})));
}

TEST(Settings, AWrongSpoolLimitIsAWarning) {
  const auto settings =
      load_settings({"kafka://a:1", "", "", ""}, with({{"TOCSIN_SPOOL_LIMIT", "many"}}));
  ASSERT_TRUE(settings);
  ASSERT_EQ(settings->warnings.size(), 1U);
  EXPECT_THAT(settings->warnings[0], HasSubstr("1GiB"));
}

TEST(Settings, TooManyLabelsAreAWarning) {
  std::string labels = "{";
  for (int i = 0; i < 300; ++i)
    labels += (i == 0 ? "\"l" : ",\"l") + std::to_string(i) + "\":\"x\"";
  const auto settings = load_settings({"", "", "", labels + "}"}, with({}));
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->labels.entries().size(), 40U);
  EXPECT_EQ(settings->warnings.size(), 1U);
}

TEST(Settings, WhatIsMostLikelyMeantAsAClusterIsNoFolder) {
  for (const char* out : {"localhost:9092", "kafka:/x", "http://x", "C:\\x", " "}) {
    EXPECT_FALSE(load_settings({out, "", "", ""}, with({}))) << out;
    EXPECT_FALSE(load_settings({}, with({{"TOCSIN_OUT", out}}))) << out;
  }
  EXPECT_EQ(load_settings({"./localhost:9092", "", "", ""}, with({}))->out, "./localhost:9092");
}

// The first rank asks before the folder exists, the second afterwards.
TEST(Settings, CommandsAreSharedByRunAndPlaceHoweverThePlaceIsWritten) {
  const core::RunUid run = core::run_uid_for("j", "a");
  const std::string folder = ::testing::TempDir() + "share" + std::to_string(getpid());
  const auto at = [&](const std::string& out) {
    return load_settings({out, "", "", ""}, with({})).value();
  };
  const std::string before = command_share(at(folder), run);
  EXPECT_EQ(command_share(at(std::filesystem::relative(folder).string()), run), before);
  std::filesystem::create_directory(folder);
  EXPECT_EQ(
      command_share(at(folder + "/../" + std::filesystem::path(folder).filename().string()), run),
      before);
  EXPECT_EQ(command_share(at(std::filesystem::relative(folder).string()), run), before);
  EXPECT_NE(command_share(at(folder), core::run_uid_for("j", "b")), before);
  EXPECT_NE(command_share(at(folder + "2"), run), before);
  EXPECT_NE(command_share(at("kafka://a:1"), run), command_share(at("kafka://b:1"), run));
  EXPECT_LT(before.size(), 100U);  // of an abstract socket's 107
  std::filesystem::remove(folder);
}

TEST(Settings, JournalWriterNamesTheProcess) {
  Identity identity;
  identity.run = *core::parse_run_uid("4e3046d4-8c1f-5278-82e3-ea3595bc5999");
  identity.attempt = 2;
  identity.rank = 3;
  EXPECT_EQ(journal_writer(identity, 0x1887abc), "hook-4e3046d4-2-3-0000000001887abc");
}

}  // namespace
}  // namespace tocsin::hook
