// Answers that a client may keep.
#include "app/serve/entity_tag.h"

#include <gtest/gtest.h>

namespace tocsin::app {
namespace {

TEST(EntityTagTest, IsOfTheMeaningAndFoundAmongSeveral) {
  const std::string tag = weak_tag("a");
  EXPECT_EQ(tag, weak_tag("a"));
  EXPECT_NE(tag, weak_tag("b"));
  EXPECT_TRUE(tag.starts_with("W/\"") && tag.ends_with("\""));
  EXPECT_TRUE(names_tag(tag, tag));
  EXPECT_TRUE(names_tag(tag.substr(2), tag)) << "weakness does not count";
  EXPECT_TRUE(names_tag("\"x\", " + tag + " ,\"y\"", tag));
  EXPECT_TRUE(names_tag("*", tag));
  EXPECT_FALSE(names_tag("", tag));
  EXPECT_FALSE(names_tag("\"x\"", tag));
  EXPECT_FALSE(names_tag(tag.substr(0, tag.size() - 1), tag));
}

TEST(EntityTagTest, WhoHasItGetsNoBody) {
  HttpRequest request{"GET", "/", "", ""};
  HttpAnswer first{200, "body"};
  let_keep(request, "meaning", first);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "body");
  const std::string tag = weak_tag("meaning");
  request.headers = {{"If-None-Match", tag}};
  HttpAnswer again{200, "body of later"};
  let_keep(request, "meaning", again);
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(again.headers, (HttpHeaders{{"ETag", tag}, {"Cache-Control", "private, max-age=600"}}));
  HttpAnswer other{200, "body"};
  let_keep(request, "another meaning", other);
  EXPECT_EQ(other.status, 200);
}

}  // namespace
}  // namespace tocsin::app
