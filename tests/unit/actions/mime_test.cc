#include "actions/mime.h"

#include <gtest/gtest.h>

namespace tocsin::actions {
namespace {

TEST(QuotedPrintable, EncodesWhatMailMayChange) {
  EXPECT_EQ(quoted_printable("a=b\n"), "a=3Db\r\n");
  EXPECT_EQ(quoted_printable("ö"), "=C3=B6");
  EXPECT_EQ(quoted_printable("blank \nnext"), "blank=20\r\nnext");
  EXPECT_EQ(quoted_printable(".\n..x"), "=2E\r\n=2E.x");
  EXPECT_EQ(quoted_printable("a\r\nb"), "a\r\nb");
  EXPECT_EQ(quoted_printable(std::string_view("\0\x7f", 2)), "=00=7F");
  EXPECT_EQ(quoted_printable(""), "");
}

TEST(QuotedPrintable, BreaksLinesBeforeTheyAreTooLong) {
  for (const char* letter : {"x", "ö", ".", " "}) {
    std::string text;
    for (int i = 0; i < 300; ++i) text += letter;
    const std::string out = quoted_printable(text);
    std::size_t column = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      column = out[i] == '\n' ? 0 : column + 1;
      ASSERT_LE(column, 77u);  // 76 and the CR
      if (column == 1) {
        EXPECT_NE(out[i], '.');
      }
    }
  }
}

TEST(HeaderText, IsLeftAloneWhenItIsAscii) {
  EXPECT_EQ(header_text("[FIRING:1] a"), "[FIRING:1] a");
}

TEST(HeaderText, BecomesWordsThatAreShortAndCutBetweenLetters) {
  EXPECT_EQ(header_text("ö"), "=?UTF-8?B?w7Y=?=");
  std::string text;
  for (int i = 0; i < 50; ++i) text += "ö";
  const std::string out = header_text(text);
  std::size_t begin = 0;
  for (std::size_t at = out.find("\r\n "); at != std::string::npos; at = out.find("\r\n ", begin)) {
    EXPECT_LE(at - begin, 76u);
    begin = at + 3;
  }
  EXPECT_GT(begin, 0u);
}

TEST(HeaderText, CannotEndTheHeader) { EXPECT_EQ(header_text("a\r\nBcc: b"), "a  Bcc: b"); }

TEST(Mailbox, IsOneAddressWithOrWithoutAName) {
  EXPECT_EQ(parse_mailbox("a@b.c")->address, "a@b.c");
  EXPECT_EQ(parse_mailbox("Ada L <a@b.c>")->name, "Ada L");
  EXPECT_EQ(parse_mailbox("\"Ada\" <a@b.c>")->name, "Ada");
  for (const char* wrong : {"", "a", "@b", "a@", "a@b@c", "a b@c", "a@b.c, d@e.f", "Ada <a@b.c> x",
                            "a@b.c\r\nX: y", "Ada\r\nX: y <a@b.c>", "<a@b.c", "a@b.c>"}) {
    EXPECT_FALSE(parse_mailbox(wrong)) << wrong;
  }
}

TEST(MailDate, IsWrittenAsRfc5322Says) {
  EXPECT_EQ(mail_date(*core::parse_rfc3339("2026-01-02T03:04:05.678Z")),
            "Fri, 02 Jan 2026 03:04:05 +0000");
  EXPECT_EQ(mail_date(*core::parse_rfc3339("2024-02-29T23:59:59Z")),
            "Thu, 29 Feb 2024 23:59:59 +0000");
}

}  // namespace
}  // namespace tocsin::actions
