// The table of HTTP routes, without sockets.
#include "app/serve/http_routes.h"

#include <gtest/gtest.h>

#include <string>

namespace tocsin::app {
namespace {

HttpAnswer echoed_request(const HttpRequest& request) {
  return {200, std::string(request.method) + " " + std::string(request.path) + " " +
                   std::string(request.query) + " " + std::string(request.body)};
}
HttpAnswer busy_page(const HttpRequest&) { return {503, "busy\n"}; }

HttpRoutes sample_routes() {
  return HttpRoutes({{"GET", "/a", "text/x", echoed_request},
                     {"POST", "/a", "text/y", echoed_request},
                     {"GET", "/a/b", "text/z", busy_page},
                     {"GET", "/old", "text/z", busy_page, false},
                     {"DELETE", "/gone", "text/z", echoed_request}});
}

std::string allow_of(const HttpResponse& made) {
  for (const auto& [name, value] : made.headers) {
    if (name == "Allow") return value;
  }
  return {};
}

TEST(HttpRoutes, MethodAndPathChooseTheHandlerAndItsContentType) {
  const auto get = sample_routes().answer({"GET", "/a", "x=1", ""});
  EXPECT_EQ(get.status, 200);
  EXPECT_EQ(get.content_type, "text/x");
  EXPECT_EQ(get.body, "GET /a x=1 ");
  EXPECT_TRUE(get.headers.empty());
  const auto post = sample_routes().answer({"POST", "/a", "", "body"});
  EXPECT_EQ(post.content_type, "text/y");
  EXPECT_EQ(post.body, "POST /a  body");
}

TEST(HttpRoutes, TheHandlerChoosesTheStatus) {
  const auto made = sample_routes().answer({"GET", "/a/b", "", ""});
  EXPECT_EQ(made.status, 503);
  EXPECT_EQ(made.body, "busy\n");
  EXPECT_EQ(sample_routes().answer({"GET", "/old", "", ""}).status, 503);
}

TEST(HttpRoutes, HeadIsAnsweredLikeGet) {
  EXPECT_EQ(sample_routes().answer({"HEAD", "/a", "", ""}).content_type, "text/x");
  EXPECT_EQ(sample_routes().answer({"HEAD", "/a/b", "", ""}).status, 503);
  EXPECT_EQ(sample_routes().answer({"HEAD", "/gone", "", ""}).status, 405);
}

TEST(HttpRoutes, AnotherMethodIsToldWhatIsAllowed) {
  const auto made = sample_routes().answer({"PUT", "/a", "", ""});
  EXPECT_EQ(made.status, 405);
  EXPECT_EQ(allow_of(made), "GET, HEAD, POST");
  EXPECT_EQ(made.body, "allowed here: GET, HEAD, POST\n");
  EXPECT_EQ(allow_of(sample_routes().answer({"get", "/a/b", "", ""})),
            "GET, HEAD");  // methods have a case
  EXPECT_EQ(allow_of(sample_routes().answer({"GET", "/gone", "", ""})), "DELETE");
}

TEST(HttpRoutes, AnUnknownPathIsToldWhatIsServed) {
  for (const char* path : {"/nowhere", "", "/", "/a/", "/A", "/a/b/c"}) {
    for (const char* method : {"GET", "PUT"}) {
      const auto made = sample_routes().answer({method, path, "", ""});
      EXPECT_EQ(made.status, 404) << path;
      EXPECT_EQ(made.content_type, "text/plain; charset=utf-8");
      EXPECT_EQ(made.body, "not found; served here: /a /a/b /gone\n");
      EXPECT_TRUE(made.headers.empty());
    }
  }
}

}  // namespace
}  // namespace tocsin::app
