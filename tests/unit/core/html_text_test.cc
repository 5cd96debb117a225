#include "core/html_text.h"

#include <gtest/gtest.h>

namespace tocsin::core {
namespace {

TEST(HtmlText, LeavesNothingThatAPageWouldRead) {
  EXPECT_EQ(html_escaped("<a href=\"x\" b='y'>&"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;");
  EXPECT_EQ(html_escaped("a\x01\x1b[31m\tb"), "a  [31m b");
  EXPECT_EQ(html_escaped("gr\u00fc\u00df"), "gr\u00fc\u00df");
  EXPECT_EQ(html_escaped(""), "");
}

TEST(HtmlText, NothingTurnsTheDirectionOfWhatFollows) {
  EXPECT_EQ(html_escaped("a\u202e"
                         "b\u2067"),
            "a b ");
}

TEST(HtmlText, BytesThatAreNoTextAreMarked) {
  EXPECT_EQ(html_escaped("\xC3("), "\ufffd(");
  EXPECT_EQ(html_escaped("\xF0\x9F\x98"), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(html_escaped("a\xff<\n\xff"), "a\ufffd&lt;\n\ufffd");
}

TEST(HtmlText, NewlinesStay) { EXPECT_EQ(html_escaped("\na\n\nb\r\n"), "\na\n\nb \n"); }

}  // namespace
}  // namespace tocsin::core
