// What a command needs of a configuration whose other sections are broken.
#include "app/config/transport_sections.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tocsin::app {
namespace {

class TransportSectionsTest : public ::testing::Test {
 protected:
  TransportSectionsTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("sections" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TransportSectionsTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& text, const char* name = "t.yaml") {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
  core::Result<TransportSections> read(const std::string& text) {
    return read_transport_sections(write(text), [](const std::string& name) {
      return name == "SET" ? std::optional<std::string>("./from-variable") : std::nullopt;
    });
  }

  std::filesystem::path folder_;
};

const char* const kTransport =
    "transport: {journal: ./d}\ntopics: {prefix: mine}\ncluster: north\n";

struct Broken {
  const char* name;
  const char* rest;
};

class BrokenRest : public TransportSectionsTest, public ::testing::WithParamInterface<Broken> {};

TEST_P(BrokenRest, DoesNotKeepTheTransportFromBeingRead) {
  for (const bool first : {true, false}) {
    const std::string rest = GetParam().rest;
    const auto found = read(first ? kTransport + rest : rest + "\n" + kTransport);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->settings.transport.journal, "./d");
    EXPECT_EQ(found->settings.topics.prefix, "mine");
    EXPECT_EQ(found->settings.cluster, "north");
    EXPECT_GT(found->errors, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sections, BrokenRest,
    ::testing::Values(Broken{"unknown_section", "rulez: []\n"},
                      Broken{"unknown_rule", "rules: [explodng_tensor]\n"},
                      Broken{"unset_variable", "receivers: {a: {webhook: {url: '${NOT_SET}'}}}\n"},
                      Broken{"missing_include", "include: nowhere.yaml\n"},
                      Broken{"unclosed_list", "rules: [overfit\n"},
                      Broken{"unclosed_map", "receivers:\n  a: {webhook: {url: x\n"},
                      Broken{"tab", "rules:\n\t- overfit\n"},
                      Broken{"colon", "labels:\n  note: a: b\n"},
                      Broken{"quote", "labels:\n  note: \"a\n"},
                      Broken{"no_utf8", "labels:\n  note: \xff\xfe\n"},
                      Broken{"duplicate", "log: {level: info}\nlog: {level: info}\n"},
                      Broken{"inner_duplicate", "log: {level: info, level: warn}\n"},
                      Broken{"wrong_route", "route: {receiver: nobody}\n"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_F(TransportSectionsTest, AGoodFileHasNoErrors) {
  const auto found = read(std::string(kTransport) + "rules: [overfit]\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->errors, 0U);
}

TEST_F(TransportSectionsTest, TheTransportOfAnIncludedFileIsFound) {
  write("transport: {journal: ./included}\n", "part.yaml");
  const auto found = read("include: part.yaml\nrulez: []\n");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->settings.transport.journal, "./included");
}

TEST_F(TransportSectionsTest, AMapOnOneLineIsReadToo) {
  const auto found = read("{transport: {journal: ./d}, rulez: []}\n");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->settings.transport.journal, "./d");
}

TEST_F(TransportSectionsTest, VariablesOfTheTransportAreReplaced) {
  const auto found = read("transport: {journal: '${SET}'}\nrulez: []\n");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->settings.transport.journal, "./from-variable");
}

TEST_F(TransportSectionsTest, AWrongTransportIsRefusedWithItsPlace) {
  struct Wrong {
    const char* text;
    const char* words;
  };
  for (const auto& [text, words] :
       {Wrong{"transport: {jornal: ./d}\nrulez: []\n", "did you mean \"journal\"?"},
        Wrong{"rulez: []\ntransport: {journal: '${NOT_SET}'}\n", "NOT_SET is not set"},
        Wrong{"transport: {journal: ./d}\ntransport: {journal: ./e}\n", "duplicate key"},
        Wrong{"transport: {journal: ./d, journal: ./e}\nrulez: []\n", "duplicate key"},
        Wrong{"transport: {journal: [\nrules: [overfit]\n", "never closed"},
        Wrong{"transport: {journal: ./d}\ntopics: {prefix: ''}\n", "prefix"},
        Wrong{"transprot: {journal: ./d}\n", "no `transport:` that can be read"},
        Wrong{"rules: [overfit\n", "no `transport:` that can be read"}}) {
    const auto found = read(text);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error().code, core::Code::invalid_argument) << text;
    EXPECT_NE(found.error().message.find(words), std::string::npos) << found.error().message;
    EXPECT_NE(found.error().message.find("--from"), std::string::npos) << found.error().message;
  }
}

TEST_F(TransportSectionsTest, AMissingFileIsRefused) {
  const auto found =
      read_transport_sections((folder_ / "none.yaml").string(), config::process_environment());
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("there is no file"), std::string::npos);
}

}  // namespace
}  // namespace tocsin::app
