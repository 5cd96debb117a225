// Records of `router-control` by kind: which keys there are, and what happens to others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "routing/suppress/controls.h"
#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(std::string_view key) {
  Controls controls;
  const core::Status status = controls.apply(key, "{}", kStart);
  return status ? "" : status.error().message;
}

TEST(Controls, AKeyOfNoKindIsRefusedWithTheKindsThereAre) {
  EXPECT_THAT(refusal("acks/one"), AllOf(HasSubstr("\"acks/one\""), HasSubstr("silence/<id>")));
  EXPECT_THAT(refusal("silence"), AllOf(HasSubstr("expected "), HasSubstr("silence/<id>")));
  EXPECT_THAT(refusal("silense/sil_one"), HasSubstr("did you mean \"silence/\"?"));
  EXPECT_THAT(refusal(""), HasSubstr("unknown key \"\""));
}

TEST(Controls, AKeyOfAnyLengthAndAnyBytesMakesAShortMessage) {
  const std::string message = refusal(std::string(100'000, '\x01') + "/x");
  EXPECT_LT(message.size(), 1000U);
  EXPECT_THAT(message, Not(HasSubstr("\x01")));
}

TEST(Controls, KindsAreAscendingAndSayWhoWritesThemAndWhatATombstoneMeans) {
  std::string before;
  for (const ControlKind& kind : control_kinds()) {
    EXPECT_LT(before, kind.prefix);
    EXPECT_TRUE(kind.key.starts_with(std::string(kind.prefix) + "/")) << kind.prefix;
    EXPECT_FALSE(kind.writers.empty()) << kind.prefix;
    EXPECT_FALSE(kind.tombstone.empty()) << kind.prefix;
    EXPECT_NE(kind.make(), nullptr) << kind.prefix;
    before = kind.prefix;
  }
}

TEST(Controls, TheStateOfAKindThatIsNotThereIsLeftAlone) {
  Controls controls;
  EXPECT_EQ(controls.restore("approval", "one", "{}"), std::nullopt);
  Harness h;
  h.open();
  EXPECT_TRUE(h.router().restore("approval/one", "not even JSON"));
  h.commit();
  EXPECT_EQ(h.changelog.count("approval/one"), 0U) << "no tombstone: a later version may know it";
}

TEST(Controls, ThePageHasARowForEachKind) {
  std::ifstream file("docs/transports.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const ControlKind& kind : control_kinds()) {
    const std::string row = "| `" + std::string(kind.key) + "` | " + std::string(kind.writers) +
                            " | " + std::string(kind.tombstone) + " |";
    EXPECT_THAT(text.str(), HasSubstr(row));
  }
}

}  // namespace
}  // namespace tocsin::routing
